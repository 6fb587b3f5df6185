#include "plugins/cpu/kernel_table.h"

#include <algorithm>
#include <array>

#include "plugins/cpu/checks.h"
#include "plugins/cpu/op_info.h"

namespace pavo::cpu {

#define PAVO_CPU_KERNELS(family) std::span<const Kernel> family##_kernels();
#include "plugins/cpu/kernels.inc"
#undef PAVO_CPU_KERNELS

// One per op of ops.inc, in reference/<op>.cpp; a missing one is a link error.
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  const Reference& name##_reference();
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD

namespace {

const Reference* find_reference(int32_t op) {
  switch (op) {
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  case id:                                                          \
    return &name##_reference();
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
    default:
      return nullptr;
  }
}

template <typename Visit>
void visit_family(std::span<const Kernel> family, int32_t op, Visit& visit) {
  for (const Kernel& kernel : family) {
    if (kernel.op == op) {
      visit(kernel);
    }
  }
}

template <typename Visit>
void for_each_fast_kernel(int32_t op, Visit&& visit) {
#define PAVO_CPU_KERNELS(family) visit_family(family##_kernels(), op, visit);
#include "plugins/cpu/kernels.inc"
#undef PAVO_CPU_KERNELS
}

const Kernel* accept(const Kernel& kernel, const NodeQuery& query, pavo_verdict* verdict) {
  sdk::clear_verdict(verdict);
  verdict->decision = kernel.decision;
  verdict->workspace_bytes = kernel.workspace_bytes(query);
  sdk::copy_text(verdict->variant, sizeof verdict->variant, kernel.name);
  return &kernel;
}

const Kernel* best_kernel(const NodeQuery& query, const Kernel& reference) {
  const Kernel* best = nullptr;
  if (!query.options.reference) {
    pavo_verdict refusal{};
    refusal.struct_size = sizeof refusal;
    for_each_fast_kernel(query.node.op, [&](const Kernel& kernel) {
      if (best == nullptr && kernel.supports(query, &refusal)) {
        best = &kernel;
      }
    });
  }
  return best != nullptr ? best : &reference;
}

}  // namespace

const Kernel* choose_kernel(const NodeQuery& query, pavo_verdict* verdict) {
  const int32_t op = query.node.op;
  const Reference* reference = find_reference(op);
  if (reference == nullptr) {
    sdk::refuse(verdict, PAVO_REASON_OP, -1, -1, 0, op, "op %d is not known here", op);
    return nullptr;
  }
  const std::vector<int32_t>& refused = query.options.refused;
  if (std::find(refused.begin(), refused.end(), op) != refused.end()) {
    sdk::refuse(verdict, PAVO_REASON_POLICY, -1, -1, 0, op, "the option refuse names this op");
    return nullptr;
  }
  if (!check_node(query, verdict) || !reference->kernel.supports(query, verdict)) {
    return nullptr;
  }
  for (const auto& [forced_op, name] : query.options.forced) {
    if (forced_op == op) {
      const Kernel* kernel = find_kernel(op, name);
      return kernel != nullptr && kernel->supports(query, verdict) ? accept(*kernel, query, verdict)
                                                                   : nullptr;
    }
  }
  return accept(*best_kernel(query, reference->kernel), query, verdict);
}

Cost node_cost(const NodeQuery& query) {
  return find_reference(query.node.op)->cost(query);
}

const Kernel* find_kernel(int32_t op, std::string_view name) {
  const Kernel* found = nullptr;
  for_each_fast_kernel(op, [&](const Kernel& kernel) {
    if (name == kernel.name) {
      found = &kernel;
    }
  });
  const Reference* reference = find_reference(op);
  return found == nullptr && reference != nullptr && name == kReferenceName ? &reference->kernel
                                                                            : found;
}

std::string kernel_names(int32_t op, const char* separator) {
  std::string names = kReferenceName;
  for_each_fast_kernel(op, [&](const Kernel& kernel) {
    names += separator;
    names += kernel.name;
  });
  return names;
}

}  // namespace pavo::cpu
