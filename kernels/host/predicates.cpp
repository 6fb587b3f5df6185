#include "kernels/host/predicates.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "pavo/plugin_helpers.h"

#include "kernels/common/checks.h"
#include "kernels/host/caps.h"
#include "kernels/host/error.h"

namespace pavo::cuda {
namespace {

// One launch in a replayed graph. An estimate, not measured on these chips.
constexpr double kLaunchNs = 3000;
// Kernels for every shape neither vectorise nor tile.
constexpr double kSlowFactor = 4;

int64_t estimate_ns(const Kernel& kernel, const NodeQuery& query) {
  const Cost cost = kernel.cost(query);
  const double seconds = std::max(
      static_cast<double>(cost.bytes) / query.caps.bandwidth_bytes_per_s,
      cost.flops / query.caps.f32_flops);
  const double factor = kernel.decision == PAVO_ACCEPT_SLOW ? kSlowFactor : 1.0;
  return static_cast<int64_t>(std::min(seconds * 1e9 * factor + kLaunchNs, 9e18));
}

bool allowed_by_options(const Options& options, int32_t op, pavo_verdict* verdict) {
  if (std::find(options.refused.begin(), options.refused.end(), op) == options.refused.end()) {
    return true;
  }
  return sdk::refuse(
      verdict, PAVO_REASON_POLICY, -1, -1, 0, op, "the option 'refuse' names %s", op_name(op));
}

bool runs_on_chip(const PluginInfo& info, const Caps& caps, pavo_verdict* verdict) {
  if (info.runs_on(caps.compute_capability)) {
    return true;
  }
  return sdk::refuse(
      verdict,
      PAVO_REASON_DEVICE_FEATURE,
      -1,
      -1,
      info.facts.compute_capability,
      caps.compute_capability,
      "expected a device of compute capability %d.%d%s, got %d.%d",
      info.facts.compute_capability / 10,
      info.facts.compute_capability % 10,
      info.has_ptx ? " or more" : "",
      caps.compute_capability / 10,
      caps.compute_capability % 10);
}

const std::string* forced_variant(const Options& options, int32_t op) {
  for (const auto& [forced_op, name] : options.forced) {
    if (forced_op == op) {
      return &name;
    }
  }
  return nullptr;
}

void accept(const Kernel& kernel, const NodeQuery& query, pavo_verdict* verdict) {
  sdk::clear_verdict(verdict);
  verdict->decision = kernel.decision;
  verdict->workspace_bytes = kernel.workspace_bytes(query);
  verdict->est_source = PAVO_EST_MODEL;
  verdict->est_ns = estimate_ns(kernel, query);
  std::strncpy(verdict->variant, kernel.name, sizeof verdict->variant - 1);
}

// The caller's verdict may be shorter or longer than ours.
int32_t write_verdict(const pavo_verdict& verdict, pavo_verdict* target, pavo_error* error) {
  if (target == nullptr || target->struct_size < offsetof(pavo_verdict, variant)) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected a pavo_verdict of at least %zu bytes, got %u",
        offsetof(pavo_verdict, variant),
        target == nullptr ? 0u : target->struct_size);
  }
  const uint32_t size = target->struct_size;
  std::memcpy(static_cast<void*>(target), &verdict, std::min<size_t>(size, sizeof verdict));
  target->struct_size = size;
  return PAVO_OK;
}

}  // namespace

const Kernel* choose_kernel(
    const PluginInfo& info,
    const Options& options,
    const Caps& caps,
    const GraphCopy& graph,
    uint32_t node_index,
    pavo_verdict* verdict) {
  const pavo_node& node = graph.node(node_index);
  const NodeQuery query = {caps, graph.graph(), node};
  if (!graph.check_params(node_index, verdict) || !check_node(query, verdict) ||
      !runs_on_chip(info, caps, verdict) || !allowed_by_options(options, node.op, verdict)) {
    return nullptr;
  }
  const std::string* forced = forced_variant(options, node.op);
  // If all refuse, the last one asked has the widest range, and its reason is the one to tell.
  sdk::refuse(
      verdict,
      PAVO_REASON_OP,
      -1,
      -1,
      0,
      node.op,
      "no kernel for %s in %.*s",
      op_name(node.op),
      static_cast<int>(info.id.size()),
      info.id.data());
  for (const KernelList& family : info.families) {
    for (const Kernel& kernel : family) {
      if (kernel.op != node.op || (forced != nullptr && *forced != kernel.name)) {
        continue;
      }
      if (kernel.supports(query, verdict)) {
        accept(kernel, query, verdict);
        return &kernel;
      }
      std::strncpy(verdict->variant, kernel.name, sizeof verdict->variant - 1);
    }
  }
  return nullptr;
}

int32_t query_nodes(
    const PluginInfo& info,
    const Options& options,
    const pavo_values* caps_values,
    const pavo_graph* graph,
    pavo_verdict* const* verdicts,
    pavo_error* error) {
  Caps caps;
  PAVO_TRY(read_caps(info, caps_values, &caps, error));
  GraphCopy copy;
  PAVO_TRY(copy.init(graph, error));
  if (verdicts == nullptr && copy.node_count() != 0) {
    return sdk::fail(error, PAVO_ERROR_INVALID_ARGUMENT, "expected an array of verdicts, got NULL");
  }
  for (uint32_t i = 0; i < copy.node_count(); ++i) {
    pavo_verdict verdict{};
    verdict.struct_size = sizeof verdict;
    choose_kernel(info, options, caps, copy, i, &verdict);
    PAVO_TRY(write_verdict(verdict, verdicts[i], error));
  }
  return PAVO_OK;
}

}  // namespace pavo::cuda
