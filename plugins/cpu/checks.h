// What every node must satisfy, whichever op it is.
#pragma once

#include "plugins/cpu/kernel.h"

namespace pavo::cpu {

// Arity, indices, and each operand by itself: rank, sizes (none negative, nothing overflows), type,
// role, strides (last dimension dense, others non-negative multiples of 4, outputs do not overlap
// themselves). Everything else about a node is the reference's supports.
bool check_node(const NodeQuery& query, pavo_verdict* verdict);

}  // namespace pavo::cpu
