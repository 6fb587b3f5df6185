#include "core/device_lowering.h"

#include <algorithm>
#include <numeric>

#include "core/graph_view.h"
#include "core/op_rules.h"
#include "core/simpler_ops.h"

namespace pavo {
namespace {

using Verdicts = std::vector<pavo_verdict>;

Result<Verdicts> ask(const Device& device, const Graph& graph) {
  const GraphView view(graph);
  return device.plugin().query(device.caps(), view.get());
}

std::vector<uint32_t> own_origins(const Graph& graph) {
  std::vector<uint32_t> origin(graph.nodes().size());
  std::iota(origin.begin(), origin.end(), 0);
  return origin;
}

// A graph with some of its nodes taken apart.
struct Apart {
  Graph graph;
  std::vector<uint32_t> origin;  // of each node: the one of the first graph that it is a part of
  std::vector<bool> accepted;    // by node of the first graph: the device takes all of its parts
};

// Takes apart what the device refuses of the nodes `wanted`, as far as that goes.
Result<Apart> take_apart(
    const Device& device, const Graph& graph, Verdicts verdicts, const std::vector<bool>& wanted) {
  Apart apart = {graph, own_origins(graph), std::vector<bool>(graph.nodes().size(), true)};
  for (bool any = true; any;) {
    any = false;
    const std::vector<uint32_t> origin = apart.origin;
    const auto choose = [&](uint32_t n, const Node& node) -> Graph::Expand {
      const bool refused = verdicts[n].decision == PAVO_REFUSE;
      const auto parts = wanted[origin[n]] && refused ? simpler_ops(apart.graph, node) : nullptr;
      any = any || parts != nullptr;
      return parts;
    };
    PAVO_RETURN_IF_ERROR(apart.graph.expand(choose, &apart.origin));
    if (any) {
      PAVO_ASSIGN_OR_RETURN(verdicts, ask(device, apart.graph));
    }
  }
  for (size_t n = 0; n < verdicts.size(); ++n) {
    if (verdicts[n].decision == PAVO_REFUSE) {
      apart.accepted[apart.origin[n]] = false;
    }
  }
  return apart;
}

void tell(
    const Device& device,
    const Node& node,
    const pavo_verdict& verdict,
    std::vector<LoweredClass>* classes) {
  const OpInfo* info = find_op(node.op);
  const std::string op = info == nullptr ? "?" : info->name;
  for (LoweredClass& known : *classes) {
    if (known.device == device.id() && known.op == op && known.text == verdict.text) {
      ++known.nodes;
      return;
    }
  }
  classes->push_back({device.id(), op, verdict.text, 1});
}

// Of the nodes that no device runs so far (*open), those that the device refuses, may run, and that
// have a simpler form; closes those that it takes as they are.
Result<std::vector<bool>> wanted_nodes(
    const Graph& graph,
    const Verdicts& verdicts,
    std::span<Device* const> devices,
    size_t device,
    const PlacementOptions& options,
    std::vector<bool>* open) {
  std::vector<bool> wanted(graph.nodes().size(), false);
  for (size_t n = 0; n < wanted.size(); ++n) {
    const Node& node = graph.nodes()[n];
    PAVO_ASSIGN_OR_RETURN(const int64_t ruled, ruled_device(node, devices, options.rules));
    if (!(*open)[n] || (ruled >= 0 && static_cast<size_t>(ruled) != device)) {
      continue;
    }
    const bool refused = verdicts[n].decision == PAVO_REFUSE;
    (*open)[n] = refused;
    wanted[n] = refused && simpler_ops(graph, node) != nullptr;
  }
  return wanted;
}

bool any_of(const std::vector<bool>& list) {
  return std::find(list.begin(), list.end(), true) != list.end();
}

}  // namespace

Result<std::vector<LoweredClass>> lower_for_devices(
    Graph* graph, std::span<Device* const> devices, const PlacementOptions& options) {
  std::vector<LoweredClass> classes;
  std::vector<bool> open(graph->nodes().size(), true);
  for (size_t d = 0; d < devices.size() && any_of(open); ++d) {
    const Device& device = *devices[d];
    PAVO_ASSIGN_OR_RETURN(const Verdicts verdicts, ask(device, *graph));
    PAVO_ASSIGN_OR_RETURN(
        std::vector<bool> wanted, wanted_nodes(*graph, verdicts, devices, d, options, &open));
    if (!any_of(wanted)) {
      continue;
    }
    PAVO_ASSIGN_OR_RETURN(const Apart trial, take_apart(device, *graph, verdicts, wanted));
    for (size_t n = 0; n < wanted.size(); ++n) {
      wanted[n] = wanted[n] && trial.accepted[n];
      if (wanted[n]) {
        open[n] = false;
        tell(device, graph->nodes()[n], verdicts[n], &classes);
      }
    }
    // The others stay whole for the next device.
    PAVO_ASSIGN_OR_RETURN(Apart lowered, take_apart(device, *graph, verdicts, wanted));
    std::vector<bool> still_open;
    for (const uint32_t origin : lowered.origin) {
      still_open.push_back(open[origin]);
    }
    open = std::move(still_open);
    *graph = std::move(lowered.graph);
  }
  return classes;
}

}  // namespace pavo
