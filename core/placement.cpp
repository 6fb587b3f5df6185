#include "core/placement.h"

#include <algorithm>
#include <string_view>

#include "core/graph_view.h"
#include "core/op_rules.h"

namespace pavo {
namespace {

bool matches(std::string_view pattern, std::string_view text) {
  size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && (pattern[p] == '?' || pattern[p] == text[t])) {
      ++p, ++t;
    } else if (p < pattern.size() && pattern[p] == '*') {
      star = p++, resume = t;
    } else if (star != std::string_view::npos) {
      p = star + 1, t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') {
    ++p;
  }
  return p == pattern.size();
}

const char* op_name(const Node& node) {
  const OpInfo* info = find_op(node.op);
  return info == nullptr ? "?" : info->name;
}

bool names_device(const std::string& target, const Device& device) {
  return target == device.id() || target == device.plugin_id();
}

std::string refusals_of(
    const Graph& graph, const Placement& placement, std::span<Device* const> devices, size_t node) {
  std::string text =
      std::string(op_name(graph.nodes()[node])) + " '" + graph.nodes()[node].name + "'";
  for (size_t d = 0; d < devices.size(); ++d) {
    text += "; " + devices[d]->id() + ": " + placement.verdicts[d][node].text;
  }
  return text;
}

}  // namespace

Result<PlaceRule> parse_place_rule(const std::string& text) {
  const size_t at = text.rfind('=');
  if (at == std::string::npos || at == 0 || at + 1 == text.size()) {
    return Status(
        Code::kInvalidArgument,
        "placement rule: expected PATTERN=DEVICE as in 'blk.*.ffn_*=cpu', got '" + text + "'");
  }
  return PlaceRule{text.substr(0, at), text.substr(at + 1)};
}

Result<int64_t> ruled_device(
    const Node& node, std::span<Device* const> devices, const std::vector<PlaceRule>& rules) {
  for (const PlaceRule& rule : rules) {
    if (!matches(rule.pattern, node.name)) {
      continue;
    }
    for (size_t d = 0; d < devices.size(); ++d) {
      if (names_device(rule.target, *devices[d])) {
        return static_cast<int64_t>(d);
      }
    }
    std::string known;
    for (const Device* device : devices) {
      known += (known.empty() ? "" : ", ") + device->id() + " (" + device->plugin_id() + ")";
    }
    return Status(
        Code::kNoBackend,
        "placement rule '" + rule.pattern + "=" + rule.target +
            "': no such device; there are: " + known);
  }
  return int64_t{-1};
}

Result<Placement> place(
    const Graph& graph, std::span<Device* const> devices, const PlacementOptions& options) {
  const GraphView view(graph);
  Placement placement;
  for (Device* device : devices) {
    PAVO_ASSIGN_OR_RETURN(auto verdicts, device->plugin().query(device->caps(), view.get()));
    placement.verdicts.push_back(std::move(verdicts));
  }
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    PAVO_ASSIGN_OR_RETURN(
        const int64_t ruled, ruled_device(graph.nodes()[n], devices, options.rules));
    size_t chosen = devices.size();
    for (size_t d = 0; d < devices.size() && chosen == devices.size(); ++d) {
      const bool allowed = ruled < 0 || static_cast<size_t>(ruled) == d;
      if (allowed && placement.verdicts[d][n].decision != PAVO_REFUSE) {
        chosen = d;
      }
    }
    if (chosen == devices.size()) {
      return Status(
          Code::kNoBackend,
          std::string(ruled < 0 ? "no device runs " : "the ruled device does not run ") +
              refusals_of(graph, placement, devices, n));
    }
    if (chosen != 0 && ruled < 0 && options.fallback == FallbackPolicy::kError) {
      return Status(
          Code::kNoBackend,
          "fallback is forbidden (--fallback error), but " + devices[0]->id() + " refuses " +
              refusals_of(graph, placement, devices, n));
    }
    placement.device_of_node.push_back(static_cast<uint32_t>(chosen));
  }
  return placement;
}

std::vector<Segment> make_segments(const Placement& placement) {
  std::vector<Segment> segments;
  for (uint32_t n = 0; n < placement.device_of_node.size(); ++n) {
    const uint32_t device = placement.device_of_node[n];
    if (segments.empty() || segments.back().device != device) {
      segments.push_back({device, {}});
    }
    segments.back().nodes.push_back(n);
  }
  return segments;
}

PlacementSummary summarize(
    const Graph& graph, const Placement& placement, std::span<Device* const> devices) {
  PlacementSummary summary;
  summary.segments = static_cast<uint32_t>(make_segments(placement).size());
  summary.lowered = placement.lowered;
  for (const Device* device : devices) {
    summary.shares.push_back({device->id(), device->plugin_id(), 0, 0});
  }
  for (size_t n = 0; n < graph.nodes().size(); ++n) {
    const uint32_t chosen = placement.device_of_node[n];
    ++summary.shares[chosen].nodes;
    summary.shares[chosen].slow_nodes +=
        placement.verdicts[chosen][n].decision == PAVO_ACCEPT_SLOW ? 1 : 0;
    for (uint32_t d = 0; d < chosen; ++d) {
      const pavo_verdict& verdict = placement.verdicts[d][n];
      if (verdict.decision != PAVO_REFUSE) {
        continue;  // a rule, not a refusal, moved it
      }
      const Node& node = graph.nodes()[n];
      const auto same = [&](const RefusalClass& c) {
        return c.device == devices[d]->id() && c.op == op_name(node) && c.text == verdict.text &&
               c.runs_on == devices[chosen]->id();
      };
      auto found = std::find_if(summary.refusals.begin(), summary.refusals.end(), same);
      if (found == summary.refusals.end()) {
        summary.refusals.push_back(
            {devices[d]->id(),
             op_name(node),
             verdict.text,
             verdict.reason,
             devices[chosen]->id(),
             0,
             node.name});
        found = summary.refusals.end() - 1;
      }
      ++found->nodes;
    }
  }
  return summary;
}

std::string to_line(const PlacementSummary& summary) {
  std::string line = "placement:";
  const char* separator = " ";
  for (const auto& share : summary.shares) {
    if (share.nodes == 0) {
      continue;
    }
    line += separator + std::to_string(share.nodes) + " nodes on " + share.device;
    line += share.device == share.plugin ? "" : " (" + share.plugin + ")";
    if (share.slow_nodes != 0) {
      line += ", " + std::to_string(share.slow_nodes) + " of them by generic kernels";
    }
    separator = "; ";
  }
  line += "; segments: " + std::to_string(summary.segments);
  for (const LoweredClass& lowered : summary.lowered) {
    line += "; " + std::to_string(lowered.nodes) + " x " + lowered.op + " in simpler ops on " +
            lowered.device + " (" + lowered.text + ")";
  }
  for (const RefusalClass& refusal : summary.refusals) {
    line += "; " + std::to_string(refusal.nodes) + " x " + refusal.op + " refused by " +
            refusal.device + " (" + refusal.text + "), runs on " + refusal.runs_on;
  }
  return line;
}

}  // namespace pavo
