#include "core/op_rules.h"

namespace pavo {
namespace {

Result<std::vector<OutputRule>> infer(const OpView& view) {
  const Tensor& gate = *view.inputs[0];
  if (gate.role != PAVO_ROLE_ACTIVATION) {
    return operand_error(view, 0, "an activation");
  }
  const Tensor* up = view.input(1);
  if (up != nullptr) {
    if (!(up->shape == gate.shape)) {
      return operand_error(view, 1, "an activation " + gate.shape.to_string());
    }
    return std::vector<OutputRule>{{gate.shape}};
  }
  if (gate.shape.last() % 2 != 0) {
    return operand_error(view, 0, "an even last dimension, gate first");
  }
  Shape half = gate.shape;
  half[half.rank() - 1] /= 2;
  return std::vector<OutputRule>{{half}};
}

IdealCost cost(const OpView&, std::span<const Tensor* const> outputs) {
  return {3 * stored_bytes(*outputs[0]), 8 * outputs[0]->shape.elements()};
}

uint32_t weight_use(size_t) {
  return PAVO_USE_DENSE;
}

}  // namespace

OpRules glu_rules() {
  return {infer, cost, weight_use};
}

}  // namespace pavo
