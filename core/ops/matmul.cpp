#include "core/op_rules.h"

namespace pavo {
namespace {

Result<std::vector<OutputRule>> infer(const OpView& view) {
  const Tensor& x = *view.inputs[0];
  const Tensor& w = *view.inputs[1];
  if (x.role != PAVO_ROLE_ACTIVATION || x.shape.rank() != 2) {
    return operand_error(view, 0, "an activation [T, K]");
  }
  if (w.role != PAVO_ROLE_WEIGHT || w.shape.rank() != 2 || w.shape[1] != x.shape[1]) {
    return operand_error(view, 1, "a weight [N, " + std::to_string(x.shape[1]) + "]");
  }
  const Tensor* bias = view.input(2);
  if (bias != nullptr && (bias->shape.rank() != 1 || bias->shape[0] != w.shape[0])) {
    return operand_error(view, 2, "a bias [" + std::to_string(w.shape[0]) + "]");
  }
  return std::vector<OutputRule>{{Shape{x.shape[0], w.shape[0]}}};
}

IdealCost cost(const OpView& view, std::span<const Tensor* const> outputs) {
  const Tensor& x = *view.inputs[0];
  const Tensor& w = *view.inputs[1];
  return {
      stored_bytes(x) + stored_bytes(w) + stored_bytes(*outputs[0]),
      2 * x.shape[0] * w.shape.elements()};
}

uint32_t weight_use(size_t index) {
  return index == 1 ? PAVO_USE_MATMUL : PAVO_USE_DENSE;
}

}  // namespace

OpRules matmul_rules() {
  return {infer, cost, weight_use};
}

}  // namespace pavo
