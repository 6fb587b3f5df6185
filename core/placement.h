// Which device runs each node, and why not the ones before it in rank.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/graph.h"

namespace pavo {

// A user's rule: nodes whose name matches the pattern (* and ?) go to the device whose id or plugin
// id is `target`. Earlier rules win.
struct PlaceRule {
  std::string pattern;
  std::string target;
};

// "blk.*.ffn_*=cpu"
Result<PlaceRule> parse_place_rule(const std::string& text);

// Index of the device that a rule demands for the node; -1 if no rule matches. kNoBackend if the
// device of the rule is not there.
Result<int64_t> ruled_device(
    const Node& node, std::span<Device* const> devices, const std::vector<PlaceRule>& rules);

enum class FallbackPolicy { kAllow, kWarn, kError };

struct PlacementOptions {
  std::vector<PlaceRule> rules;
  FallbackPolicy fallback = FallbackPolicy::kWarn;
};

// A class of nodes that a device refused as they are and runs in simpler ops.
struct LoweredClass {
  std::string device;
  std::string op;
  std::string text;  // of the refusal
  uint32_t nodes = 0;
};

struct Placement {
  std::vector<uint32_t> device_of_node;             // index into the devices
  std::vector<std::vector<pavo_verdict>> verdicts;  // [device][node]
  std::vector<LoweredClass> lowered;                // before the nodes were placed
};

// Consecutive nodes that one device runs.
struct Segment {
  uint32_t device = 0;
  std::vector<uint32_t> nodes;
};

// Asks every device about every node, one batch a device, and gives each node to the first device
// in rank that accepts it. kNoBackend, with every refusal, if none does, if a rule's target
// refuses, or if the policy is kError and a node leaves the first device in rank.
Result<Placement> place(
    const Graph& graph, std::span<Device* const> devices, const PlacementOptions& options);

std::vector<Segment> make_segments(const Placement& placement);

// A class of nodes that the devices before the chosen one in rank refused.
struct RefusalClass {
  std::string device;  // that refused
  std::string op;
  std::string text;  // the verdict's
  int32_t reason = 0;
  std::string runs_on;
  uint32_t nodes = 0;
  std::string first_node;
};

struct PlacementSummary {
  struct DeviceShare {
    std::string device;
    std::string plugin;
    uint32_t nodes = 0;
    uint32_t slow_nodes = 0;  // generic kernels
  };
  std::vector<DeviceShare> shares;
  std::vector<RefusalClass> refusals;
  std::vector<LoweredClass> lowered;
  uint32_t segments = 0;
};

PlacementSummary summarize(
    const Graph& graph, const Placement& placement, std::span<Device* const> devices);
// One line: "placement: 452 nodes on cpu (cpu)".
std::string to_line(const PlacementSummary& summary);

}  // namespace pavo
