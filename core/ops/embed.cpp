#include "core/op_rules.h"

namespace pavo {
namespace {

Result<std::vector<OutputRule>> infer(const OpView& view) {
  const Tensor& table = *view.inputs[0];
  const Tensor& ids = *view.inputs[1];
  if (table.shape.rank() != 2) {
    return operand_error(view, 0, "a table [rows, columns]");
  }
  if (ids.type != PAVO_TYPE_I32 || ids.shape.rank() != 1) {
    return operand_error(view, 1, "i32 ids [T]");
  }
  return std::vector<OutputRule>{{Shape{ids.shape[0], table.shape[1]}}};
}

IdealCost cost(const OpView& view, std::span<const Tensor* const> outputs) {
  const Tensor& table = *view.inputs[0];
  const int64_t row = pavo_type_row_bytes(table.type, table.shape.last());
  const int64_t rows = outputs[0]->shape[0];
  return {rows * row + stored_bytes(*outputs[0]) + stored_bytes(*view.inputs[1]), 0};
}

uint32_t weight_use(size_t) {
  return PAVO_USE_GATHER;
}

}  // namespace

OpRules embed_rules() {
  return {infer, cost, weight_use};
}

}  // namespace pavo
