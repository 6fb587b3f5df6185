#include "core/op_rules.h"

namespace pavo {
namespace {

constexpr size_t kQuery = 0, kKeys = 1, kValues = 2, kRows = 3, kRowSeq = 4, kSeqRows = 5,
                 kLengths = 6, kPageTable = 7, kSinks = 8, kSlopes = 9, kMask = 10, kRowList = 11;

bool is_step(const Tensor* tensor, const Shape& shape) {
  return tensor != nullptr && tensor->type == PAVO_TYPE_I32 && tensor->shape == shape;
}

// Width of the values; -1 if they do not fit K.
int64_t value_dim(const OpView& view) {
  const Tensor& keys = *view.inputs[kKeys];
  const Tensor* values = view.input(kValues);
  if (values == nullptr) {
    const int64_t dim = node_params<pavo_attention_params>(view.node).value_dim;
    return dim >= 1 && dim <= keys.shape[3] ? dim : -1;
  }
  const bool fits = values->role == PAVO_ROLE_KV_POOL && values->shape[0] == keys.shape[0] &&
                    values->shape[1] == keys.shape[1];
  return fits ? values->shape[3] : -1;
}

Status check_step_tensors(const OpView& view, int64_t tokens) {
  const Tensor* lengths = view.input(kLengths);
  if (lengths == nullptr || lengths->type != PAVO_TYPE_I32 || lengths->shape.rank() != 1) {
    return operand_error(view, kLengths, "i32 lengths [S]");
  }
  const int64_t sequences = lengths->shape[0];
  for (const size_t index : {kRows, kRowSeq}) {
    if (!is_step(view.input(index), Shape{tokens})) {
      return operand_error(view, index, "i32 [" + std::to_string(tokens) + "]");
    }
  }
  if (!is_step(view.input(kSeqRows), Shape{sequences + 1})) {
    return operand_error(view, kSeqRows, "i32 [" + std::to_string(sequences + 1) + "]");
  }
  const Tensor* pages = view.input(kPageTable);
  if (pages == nullptr || pages->type != PAVO_TYPE_I32 || pages->shape.rank() != 2 ||
      pages->shape[0] != sequences) {
    return operand_error(view, kPageTable, "i32 pages [" + std::to_string(sequences) + ", P]");
  }
  return Status();
}

Status check_optional(const OpView& view, int64_t tokens, int64_t heads) {
  for (const size_t index : {kSinks, kSlopes}) {
    const Tensor* vector = view.input(index);
    if (vector != nullptr && !(vector->shape == Shape{heads})) {
      return operand_error(view, index, "a vector [" + std::to_string(heads) + "]");
    }
  }
  for (const size_t index : {kMask, kRowList}) {
    const Tensor* table = view.input(index);
    const int32_t type = index == kMask ? PAVO_TYPE_F32 : PAVO_TYPE_I32;
    if (table != nullptr &&
        (table->type != type || table->shape.rank() != 2 || table->shape[0] != tokens)) {
      return operand_error(
          view, index, std::string(pavo_type_name(type)) + " [" + std::to_string(tokens) + ", n]");
    }
  }
  return Status();
}

Result<std::vector<OutputRule>> infer(const OpView& view) {
  const Tensor& query = *view.inputs[kQuery];
  const Tensor& keys = *view.inputs[kKeys];
  if (query.role != PAVO_ROLE_ACTIVATION || query.shape.rank() != 3) {
    return operand_error(view, kQuery, "an activation [T, heads, head dim]");
  }
  if (keys.role != PAVO_ROLE_KV_POOL || keys.shape[3] != query.shape[2] || keys.shape[1] == 0 ||
      query.shape[1] % keys.shape[1] != 0) {
    return operand_error(
        view, kKeys, "a K pool whose heads divide those of q and whose head dim is q's");
  }
  const int64_t dim = value_dim(view);
  if (dim < 0) {
    return operand_error(view, kValues, "a V pool with K's pages and heads, or value_dim within K");
  }
  PAVO_RETURN_IF_ERROR(check_step_tensors(view, query.shape[0]));
  PAVO_RETURN_IF_ERROR(check_optional(view, query.shape[0], query.shape[1]));
  return std::vector<OutputRule>{{Shape{query.shape[0], query.shape[1], dim}}};
}

int64_t row_bytes(const Tensor* pool) {
  pavo_kv_layout layout;
  if (pool == nullptr || pavo_kv_layout_init(pool->type, pool->shape[3], &layout) != 0) {
    return 0;
  }
  return layout.head_bytes / PAVO_KV_PAGE_ROWS * pool->shape[1];
}

// Upper bound: every sequence as long as the bucket allows, every token seeing all of its rows.
IdealCost cost(const OpView& view, std::span<const Tensor* const> outputs) {
  const Tensor& query = *view.inputs[kQuery];
  const auto params = node_params<pavo_attention_params>(view.node);
  int64_t rows = view.bucket.kv_rows;
  if (params.window > 0 && rows > params.window + query.shape[0]) {
    rows = params.window + query.shape[0];
  }
  const int64_t sequences = view.inputs[kLengths]->shape[0];
  const int64_t kv_bytes =
      sequences * rows * (row_bytes(view.input(kKeys)) + row_bytes(view.input(kValues)));
  return {
      kv_bytes + stored_bytes(query) + stored_bytes(*outputs[0]),
      2 * rows * query.shape[1] * query.shape[0] * (query.shape[2] + outputs[0]->shape[2])};
}

uint32_t weight_use(size_t) {
  return PAVO_USE_DENSE;
}

}  // namespace

OpRules attention_rules() {
  return {infer, cost, weight_use};
}

}  // namespace pavo
