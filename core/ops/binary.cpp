#include "core/op_rules.h"

namespace pavo {
namespace {

Result<std::vector<OutputRule>> infer(const OpView& view) {
  const Tensor& a = *view.inputs[0];
  const Tensor& b = *view.inputs[1];
  if (a.role != PAVO_ROLE_ACTIVATION) {
    return operand_error(view, 0, "an activation");
  }
  bool fits = b.shape.rank() <= a.shape.rank();
  for (int32_t i = 0; fits && i < b.shape.rank(); ++i) {
    const int64_t own = a.shape[a.shape.rank() - b.shape.rank() + i];
    fits = b.shape[i] == own || b.shape[i] == 1;
  }
  if (!fits) {
    return operand_error(view, 1, "a shape that broadcasts to " + a.shape.to_string());
  }
  return std::vector<OutputRule>{{a.shape}};
}

IdealCost cost(const OpView& view, std::span<const Tensor* const> outputs) {
  return {
      2 * stored_bytes(*outputs[0]) + stored_bytes(*view.inputs[1]), outputs[0]->shape.elements()};
}

uint32_t weight_use(size_t) {
  return PAVO_USE_DENSE;
}

}  // namespace

OpRules binary_rules() {
  return {infer, cost, weight_use};
}

}  // namespace pavo
