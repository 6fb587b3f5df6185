#include "core/op_rules.h"

namespace pavo {
namespace {

Result<std::vector<OutputRule>> infer(const OpView& view) {
  const Tensor& x = *view.inputs[0];
  const Tensor& positions = *view.inputs[1];
  const auto params = node_params<pavo_rope_params>(view.node);
  if (x.role != PAVO_ROLE_ACTIVATION || x.shape.rank() != 3) {
    return operand_error(view, 0, "an activation [T, heads, head dim]");
  }
  if (params.rotary_dims <= 0 || params.rotary_dims % 2 != 0 || params.rotary_dims > x.shape[2]) {
    return Status(
        Code::kInvalidArgument,
        "rope '" + view.node.name + "': expected an even number of rotary dimensions up to " +
            std::to_string(x.shape[2]) + ", got " + std::to_string(params.rotary_dims));
  }
  const bool sections = params.mode == PAVO_ROPE_SECTIONS;
  const Shape expected = sections ? Shape{4, x.shape[0]} : Shape{x.shape[0]};
  if (positions.type != PAVO_TYPE_I32 || !(positions.shape == expected)) {
    return operand_error(view, 1, "i32 positions " + expected.to_string());
  }
  const Tensor* factors = view.input(2);
  if (factors != nullptr &&
      (factors->type != PAVO_TYPE_F32 || !(factors->shape == Shape{params.rotary_dims / 2}))) {
    return operand_error(view, 2, "f32 factors [" + std::to_string(params.rotary_dims / 2) + "]");
  }
  return std::vector<OutputRule>{{x.shape}};
}

IdealCost cost(const OpView& view, std::span<const Tensor* const> outputs) {
  return {
      stored_bytes(*view.inputs[0]) + stored_bytes(*outputs[0]),
      3 * view.inputs[0]->shape.elements()};
}

uint32_t weight_use(size_t) {
  return PAVO_USE_DENSE;
}

}  // namespace

OpRules rope_rules() {
  return {infer, cost, weight_use};
}

}  // namespace pavo
