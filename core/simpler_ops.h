// Fused nodes in simpler ops. Each rule takes one thing out of a node; what is left may be taken
// apart again, down to ops that a new backend begins with.
#pragma once

#include "core/graph.h"

namespace pavo {

// How to say the node in simpler ops; NULL if there is no simpler form.
//   norm with a residual   binary add, norm
//   norm with a bias       norm, binary add
//   norm with a weight     norm, binary mul; with weight_offset 1 also binary add
//   matmul with a bias     matmul, binary add
//   glu of one tensor      glu of its two halves
// The new nodes have the old one's name, so that rules about names still hold.
Graph::Expand simpler_ops(const Graph& graph, const Node& node);

}  // namespace pavo
