#include "core/op_rules.h"

namespace pavo {
namespace {

Result<std::vector<OutputRule>> infer(const OpView& view) {
  const Tensor& x = *view.inputs[0];
  const Tensor& pool = *view.inputs[1];
  const Tensor& slots = *view.inputs[2];
  if (x.role != PAVO_ROLE_ACTIVATION || x.shape.rank() != 3) {
    return operand_error(view, 0, "an activation [T, heads, head dim]");
  }
  if (pool.role != PAVO_ROLE_KV_POOL || pool.shape[1] != x.shape[1] ||
      pool.shape[3] != x.shape[2]) {
    return operand_error(view, 1, "a K/V pool [pages, heads, 64, head dim] that fits x");
  }
  if (slots.type != PAVO_TYPE_I32 || !(slots.shape == Shape{x.shape[0]})) {
    return operand_error(view, 2, "i32 slots [" + std::to_string(x.shape[0]) + "]");
  }
  return std::vector<OutputRule>{{pool.shape, 1}};
}

IdealCost cost(const OpView& view, std::span<const Tensor* const>) {
  const Tensor& pool = *view.inputs[1];
  pavo_kv_layout layout;
  if (pavo_kv_layout_init(pool.type, pool.shape[3], &layout) != 0) {
    return {};
  }
  const int64_t row = layout.head_bytes / PAVO_KV_PAGE_ROWS * pool.shape[1];
  return {stored_bytes(*view.inputs[0]) + view.inputs[0]->shape[0] * row, 0};
}

uint32_t weight_use(size_t) {
  return 0;
}

}  // namespace

OpRules kv_store_rules() {
  return {infer, cost, weight_use};
}

}  // namespace pavo
