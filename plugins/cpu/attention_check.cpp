#include "plugins/cpu/attention_check.h"

#include <algorithm>
#include <cinttypes>

#include "plugins/cpu/checker.h"

namespace pavo::cpu {
namespace {

// Positions of the inputs, as in ops.inc.
enum : uint32_t {
  kQ,
  kK,
  kV,
  kRows,
  kRowSeq,
  kSeqRows,
  kLengths,
  kPageTable,
  kSinks,
  kSlopes,
  kMask,
  kRowList
};

bool check_values(const NodeQuery& query, Checker* check) {
  const pavo_tensor& k = *query.input(kK);
  const pavo_tensor* v = query.input(kV);
  const int64_t head = k.shape[3];
  const auto& params = query.params<pavo_attention_params>();
  constexpr size_t kValueDim = offsetof(pavo_attention_params, value_dim);
  const uint32_t out = check->output(0);
  if (v == nullptr) {
    return check->param_range(kValueDim, "value_dim", params.value_dim, 1, head) &&
           check->dim(out, 2, params.value_dim, "value_dim");
  }
  return check->kv_pool(kV) && check->dim(kV, 1, k.shape[1], "G of K") &&
         (params.value_dim == 0 ||
          check->param_range(kValueDim, "value_dim", params.value_dim, v->shape[3], v->shape[3])) &&
         check->dim(out, 2, v->shape[3], "Dv of V");
}

bool check_step_tensors(const NodeQuery& query, Checker* check) {
  const int64_t tokens = query.input(kQ)->shape[0];
  for (const uint32_t operand : {kRows, kRowSeq, kSeqRows, kLengths, kPageTable}) {
    if (!check->present(operand) || !check->rank(operand, operand == kPageTable ? 2 : 1)) {
      return false;
    }
  }
  const int64_t sequences = query.input(kLengths)->shape[0];
  return check->indices({kRows, kRowSeq, kSeqRows, kLengths, kPageTable, kRowList}) &&
         check->dim(kRows, 0, tokens, "T of q") && check->dim(kRowSeq, 0, tokens, "T of q") &&
         check->dim(kSeqRows, 0, sequences + 1, "S of lengths, and 1") &&
         check->dim(kPageTable, 0, sequences, "S of lengths") && check->rank(kMask, 2) &&
         check->dim(kMask, 0, tokens, "T of q") &&
         check->role(kMask, {PAVO_ROLE_STEP, PAVO_ROLE_ACTIVATION}) &&
         check->type(kMask, {PAVO_TYPE_F32}) && check->rank(kRowList, 2) &&
         check->dim(kRowList, 0, tokens, "T of q");
}

bool check_params(const pavo_attention_params& params, Checker* check) {
  return check->param_finite(offsetof(pavo_attention_params, scale), "scale", params.scale) &&
         check->param_at_least(
             offsetof(pavo_attention_params, softcap), "softcap", params.softcap, 0) &&
         check->param_range(
             offsetof(pavo_attention_params, causal), "causal", params.causal, 0, 1) &&
         check->param_range(
             offsetof(pavo_attention_params, window), "window", params.window, 0, INT32_MAX);
}

}  // namespace

bool check_attention(const NodeQuery& query, pavo_verdict* verdict) {
  Checker check(query, verdict);
  const uint32_t out = check.output(0);
  if (!check.present(kQ) || !check.present(kK) || !check.rank(kQ, 3) || !check.rank(out, 3) ||
      !check.activations({kQ, out}) || !check.kv_pool(kK) || !check.dim_at_least(kK, 1, 1)) {
    return false;
  }
  const pavo_tensor& q = *query.input(kQ);
  const int64_t heads = q.shape[1];
  const int64_t kv_heads = query.input(kK)->shape[1];
  if (heads % kv_heads != 0) {
    return sdk::refuse(
        verdict,
        PAVO_REASON_SHAPE_MULTIPLE,
        kQ,
        1,
        kv_heads,
        heads,
        "expected the query heads to be a multiple of the K/V heads, %" PRId64 ", got %" PRId64,
        kv_heads,
        heads);
  }
  return check.dim(kK, 3, q.shape[2], "D of q") && check.dim(out, 0, q.shape[0], "T of q") &&
         check.dim(out, 1, heads, "H of q") && check_values(query, &check) &&
         check_step_tensors(query, &check) && check.dense_weight(kSinks, heads) &&
         check.type(kSinks, {PAVO_TYPE_F32}) && check.dense_weight(kSlopes, heads) &&
         check.type(kSlopes, {PAVO_TYPE_F32}) &&
         check_params(query.params<pavo_attention_params>(), &check);
}

Cost attention_cost(const NodeQuery& query) {
  const pavo_tensor& q = *query.input(kQ);
  const pavo_tensor& k = *query.input(kK);
  const pavo_tensor* v = query.input(kV);
  const auto& params = query.params<pavo_attention_params>();
  const auto tokens = static_cast<double>(q.shape[0]);
  const auto sequences = static_cast<double>(query.input(kLengths)->shape[0]);
  auto rows = static_cast<double>(query.graph.bucket->kv_rows);
  if (params.window > 0) {
    rows = std::min(rows, static_cast<double>(params.window) + tokens);
  }
  if (query.input(kRowList) != nullptr) {
    rows = std::min(rows, static_cast<double>(query.input(kRowList)->shape[1]));
  }
  const auto head_bytes = [](const pavo_tensor& pool) {
    pavo_kv_layout layout{};
    pavo_kv_layout_init(pool.type, pool.shape[3], &layout);
    return static_cast<double>(layout.head_bytes) / PAVO_KV_PAGE_ROWS;
  };
  const double row_bytes = head_bytes(k) + (v != nullptr ? head_bytes(*v) : 0.0);
  const auto value_dims = static_cast<double>(query.output(0)->shape[2]);
  // A token of a causal prompt sees half of the rows on average; one of a decode step sees all.
  const double seen = params.causal != 0 && tokens > sequences ? rows - tokens / 2 : rows;
  return {
      sequences * rows * static_cast<double>(k.shape[1]) * row_bytes,
      2 * tokens * static_cast<double>(q.shape[1]) * std::max(seen, rows / 2) *
          (static_cast<double>(q.shape[2]) + value_dims)};
}

int32_t fail_attention_token(int64_t token, pavo_error* error) {
  return sdk::fail(
      error,
      PAVO_ERROR_NODE_FAILED,
      "attention: the sequence, length, page or row of token %" PRId64
      " lies outside of its table or pool; expected what the host's K/V cache handed out",
      token);
}

}  // namespace pavo::cpu
