// Lowering: a node that a device refuses is offered to it again in simpler ops, before it goes to
// another device. So a backend can begin with a handful of ops.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/graph.h"
#include "core/placement.h"

namespace pavo {

// Puts simpler ops in the place of nodes that a device refuses as they are, but takes all of whose
// parts; devices are asked in order of rank, each about what those before it do not run, in any
// form. Nodes that a rule pins are only offered to the device of the rule. Tensors keep their ids.
// What was done is told by class.
Result<std::vector<LoweredClass>> lower_for_devices(
    Graph* graph, std::span<Device* const> devices, const PlacementOptions& options);

}  // namespace pavo
