#include "core/op_rules.h"

namespace pavo {
namespace {

Result<std::vector<OutputRule>> infer(const OpView& view) {
  const Tensor& x = *view.inputs[0];
  if (x.role != PAVO_ROLE_ACTIVATION) {
    return operand_error(view, 0, "an activation");
  }
  for (size_t index = 1; index <= 2; ++index) {
    const Tensor* vector = view.input(index);
    if (vector != nullptr && (vector->shape.rank() != 1 || vector->shape[0] != x.shape.last())) {
      return operand_error(view, index, "a vector [" + std::to_string(x.shape.last()) + "]");
    }
  }
  const Tensor* residual = view.input(3);
  if (residual != nullptr && !(residual->shape == x.shape)) {
    return operand_error(view, 3, "a residual " + x.shape.to_string());
  }
  return std::vector<OutputRule>(view.output_count, OutputRule{x.shape});
}

IdealCost cost(const OpView& view, std::span<const Tensor* const> outputs) {
  const int64_t bytes = stored_bytes(*view.inputs[0]);
  const int64_t reads = view.input(3) == nullptr ? 1 : 2;
  return {
      bytes * (reads + static_cast<int64_t>(outputs.size())), 4 * view.inputs[0]->shape.elements()};
}

uint32_t weight_use(size_t) {
  return PAVO_USE_DENSE;
}

}  // namespace

OpRules norm_rules() {
  return {infer, cost, weight_use};
}

}  // namespace pavo
