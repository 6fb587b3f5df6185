#include "core/program_trace.h"

#include <string>

#include "core/op_rules.h"

namespace pavo {
namespace {

void add_costs(const IdealCost& cost, int64_t ns, TraceEvent* event) {
  event->arg("ideal_bytes", cost.bytes);
  event->arg("flops", cost.flops);
  if (ns > 0) {
    event->arg("ideal_gb_per_s", static_cast<double>(cost.bytes) / static_cast<double>(ns));
    event->arg("gflop_per_s", static_cast<double>(cost.flops) / static_cast<double>(ns));
  }
}

}  // namespace

void trace_segment(const TracedSegment& segment, std::span<const int64_t> times_ns, Trace& trace) {
  int64_t at = segment.submitted_ns;
  for (size_t i = 0; i < times_ns.size() && i < segment.nodes.size(); ++i) {
    const uint32_t n = segment.nodes[i];
    const Node& node = segment.graph.nodes()[n];
    const OpInfo* op = find_op(node.op);
    const pavo_verdict& verdict = segment.placement.verdicts[segment.device][n];
    TraceEvent event{Trace::device_track(segment.device), "node", node.name, at, times_ns[i], {}};
    event.arg("op", std::string(op == nullptr ? "?" : op->name));
    event.arg("kernel", std::string(verdict.variant));
    event.arg("generic", int64_t{verdict.decision == PAVO_ACCEPT_SLOW ? 1 : 0});
    add_costs(ideal_cost(segment.graph, node), times_ns[i], &event);
    trace.add(event);
    at += times_ns[i];
  }
}

std::string device_label(uint32_t device, const Device& opened) {
  return std::to_string(device) + " " + opened.plugin_id() + " " + opened.id();
}

}  // namespace pavo
