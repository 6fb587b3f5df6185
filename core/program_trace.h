// The nodes of a segment that ran, as events of a trace.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/device.h"
#include "core/graph.h"
#include "core/placement.h"
#include "core/trace.h"

namespace pavo {

struct TracedSegment {
  const Graph& graph;
  const Placement& placement;
  uint32_t device;  // in rank
  std::span<const uint32_t> nodes;
  int64_t submitted_ns;
};

// One event a node, on the device's track: kernel, ideal bytes and flops and the rates that follow.
// Plugins tell how long nodes took, not when they began: each is put after the one before, the
// first where the segment was submitted. `times_ns`: one a node, or empty if the plugin tells none;
// zero for a node that ran inside another.
void trace_segment(const TracedSegment& segment, std::span<const int64_t> times_ns, Trace& trace);

// As traces name a device: two plugins may have opened the same one.
std::string device_label(uint32_t device, const Device& opened);

}  // namespace pavo
