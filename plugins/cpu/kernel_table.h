// All kernels of the plugin and the choice among them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "plugins/cpu/kernel.h"

namespace pavo::cpu {

// What a node has to move and to compute at the bucket's sizes.
struct Cost {
  double bytes = 0;
  double flops = 0;
};

// The oracle of an op: plain loops, double sums. Its supports is the definition of a valid node, so
// fast kernels are asked only about nodes that it has accepted; its cost is the op's.
struct Reference {
  Kernel kernel;
  Cost (*cost)(const NodeQuery& query);
};

template <typename K>
constexpr Reference reference_entry() {
  return {entry<K>(), &K::cost};
}

inline constexpr const char* kReferenceName = "reference";

// The kernel that runs the node, or NULL with a refusal in *verdict. On success *verdict holds the
// decision, name and workspace; the estimate is left to the caller. Pure.
const Kernel* choose_kernel(const NodeQuery& query, pavo_verdict* verdict);

// Cost of a node that choose_kernel accepted.
Cost node_cost(const NodeQuery& query);

// The kernel of that op and name, or NULL.
const Kernel* find_kernel(int32_t op, std::string_view name);

// "reference, norm_rms" with the separator ", ": for messages.
std::string kernel_names(int32_t op, const char* separator);

}  // namespace pavo::cpu
