// The attention node: what every kernel asks of it, its cost, and the problem that a launch makes
// of it. Host only.
#pragma once

#include <cstdint>

#include "kernels/common/checks.h"
#include "kernels/common/kv_pool_check.h"
#include "kernels/ops/attention/problem.cuh"

namespace pavo::cuda {

// Positions of the inputs, as in ops.inc.
namespace attention_input {
constexpr uint32_t kQ = 0, kK = 1, kV = 2, kRows = 3, kRowSeq = 4, kSeqRows = 5, kLengths = 6,
                   kPageTable = 7, kSinks = 8, kSlopes = 9, kMask = 10, kRowList = 11;
}

// Counts and row numbers are 32-bit in kernels.
constexpr int64_t kMaxAttentionTokens = int64_t{1} << 24;
constexpr int64_t kMaxAttentionPages = INT32_MAX / PAVO_KV_PAGE_ROWS;
constexpr int64_t kMaxAttentionColumns = int64_t{1} << 30;

inline int64_t attention_value_dims(const NodeQuery& query) {
  const pavo_tensor* v = query.input(attention_input::kV);
  return v != nullptr ? v->shape[3] : query.params<pavo_attention_params>().value_dim;
}

inline bool attention_values_fit(const NodeQuery& query, Checker& check, pavo_verdict* verdict) {
  using namespace attention_input;
  const pavo_tensor& k = *query.input(kK);
  const auto& params = query.params<pavo_attention_params>();
  constexpr size_t kValueDim = offsetof(pavo_attention_params, value_dim);
  if (query.input(kV) == nullptr) {
    return check.param_range(kValueDim, "value_dim", params.value_dim, 1, k.shape[3]);
  }
  return kv_pool_fits(query, check, verdict, kV) && check.dim(kV, 0, k.shape[0], "pages of K") &&
         check.dim(kV, 1, k.shape[1], "G of K");
}

inline bool attention_steps_fit(const NodeQuery& query, Checker& check) {
  using namespace attention_input;
  for (const uint32_t operand : {kRows, kRowSeq, kSeqRows, kLengths, kPageTable}) {
    if (!check.present(operand) || !check.rank(operand, operand == kPageTable ? 2 : 1)) {
      return false;
    }
  }
  const int64_t tokens = query.input(kQ)->shape[0];
  const int64_t sequences = query.input(kLengths)->shape[0];
  return check.indices({kRows, kRowSeq, kSeqRows, kLengths, kPageTable, kRowList}) &&
         check.dim(kRows, 0, tokens, "T of q") && check.dim(kRowSeq, 0, tokens, "T of q") &&
         check.dim_range(kLengths, 0, 0, kMaxAttentionTokens) &&
         check.dim(kSeqRows, 0, sequences + 1, "S of lengths, and 1") &&
         check.dim(kPageTable, 0, sequences, "S of lengths") &&
         check.dim_range(kPageTable, 1, 0, kMaxAttentionPages) && check.rank(kMask, 2) &&
         check.dim(kMask, 0, tokens, "T of q") &&
         check.dim_range(kMask, 1, 0, kMaxAttentionColumns) &&
         check.role(kMask, {PAVO_ROLE_STEP, PAVO_ROLE_ACTIVATION}) &&
         check.type(kMask, {PAVO_TYPE_F32}) && check.rank(kRowList, 2) &&
         check.dim(kRowList, 0, tokens, "T of q") &&
         check.dim_range(kRowList, 1, 0, kMaxAttentionColumns);
}

inline bool attention_params_fit(const pavo_attention_params& params, Checker& check) {
  return check.param_finite(offsetof(pavo_attention_params, scale), "scale", params.scale) &&
         check.param_finite(offsetof(pavo_attention_params, softcap), "softcap", params.softcap) &&
         check.param_range(
             offsetof(pavo_attention_params, softcap),
             "the sign of softcap",
             params.softcap < 0.0f ? -1 : 0,
             0,
             0) &&
         check.param_range(
             offsetof(pavo_attention_params, causal), "causal", params.causal, 0, 1) &&
         check.param_range(
             offsetof(pavo_attention_params, window), "window", params.window, 0, INT32_MAX);
}

// What every variant asks.
inline bool attention_fits(const NodeQuery& query, pavo_verdict* verdict) {
  using namespace attention_input;
  Checker check(query, verdict);
  const uint32_t out = check.output(0);
  if (!check.present(kQ) || !check.present(kK) || !check.rank(kQ, 3) || !check.rank(out, 3) ||
      !check.activations({kQ, out}) || !check.dim_range(kQ, 0, 0, kMaxAttentionTokens) ||
      !kv_pool_fits(query, check, verdict, kK)) {
    return false;
  }
  const pavo_tensor& q = *query.input(kQ);
  const int64_t heads = q.shape[1];
  const int64_t kv_heads = query.input(kK)->shape[1];
  return check.dim_range(kQ, 1, 1, kMaxKvHeads) && check.dim_multiple(kQ, 1, kv_heads) &&
         check.dim(kK, 3, q.shape[2], "D of q") && attention_values_fit(query, check, verdict) &&
         check.dim(out, 0, q.shape[0], "T of q") && check.dim(out, 1, heads, "H of q") &&
         check.dim(out, 2, attention_value_dims(query), "Dv of V") &&
         attention_steps_fit(query, check) && check.dense_weight(kSinks, heads) &&
         check.dense_weight(kSlopes, heads) &&
         attention_params_fit(query.params<pavo_attention_params>(), check);
}

inline int64_t attention_sequences(const NodeQuery& query) {
  return query.input(attention_input::kLengths)->shape[0];
}

// Query heads of one K/V head.
inline int64_t attention_group(const NodeQuery& query) {
  using namespace attention_input;
  return query.input(kQ)->shape[1] / query.input(kK)->shape[1];
}

// Blocks that tiles of `size` query vectors take, for each K/V head. At least one where there are
// tokens: padding is to be cleared.
inline int64_t attention_tiles(const NodeQuery& query, int64_t size) {
  const int64_t tokens = query.input(attention_input::kQ)->shape[0];
  const int64_t tiles =
      query_tiles(tokens, attention_sequences(query), attention_group(query), size);
  return tiles > 0 || tokens == 0 ? tiles : 1;
}

// Upper bound of lengths[s] in this bucket.
inline int64_t attention_kv_rows(const NodeQuery& query) {
  const int64_t held =
      query.input(attention_input::kPageTable)->shape[1] * int64_t{PAVO_KV_PAGE_ROWS};
  const int64_t asked = query.graph.bucket == nullptr ? held : query.graph.bucket->kv_rows;
  return asked > 0 && asked < held ? asked : held;
}

// At the bucket's sizes; of a causal prompt a token sees its own rows by half.
inline Cost attention_cost(const NodeQuery& query) {
  using namespace attention_input;
  const pavo_tensor& q = *query.input(kQ);
  const pavo_tensor& k = *query.input(kK);
  const auto& params = query.params<pavo_attention_params>();
  const int64_t tokens = q.shape[0];
  const int64_t sequences = query.input(kLengths)->shape[0];
  int64_t rows = attention_kv_rows(query);
  if (params.window > 0 && rows > params.window + tokens) {
    rows = params.window + tokens;
  }
  if (query.input(kRowList) != nullptr && rows > query.input(kRowList)->shape[1]) {
    rows = query.input(kRowList)->shape[1];
  }
  const int64_t row_bytes =
      kv_row_bytes(k) + (query.input(kV) == nullptr ? 0 : kv_row_bytes(*query.input(kV)));
  const int64_t hidden = params.causal != 0 && sequences == 1 ? (tokens - 1) / 2 : 0;
  const auto seen = static_cast<double>(rows > 2 * hidden ? rows - hidden : rows - rows / 2);
  return {
      operand_bytes(query) + sequences * rows * k.shape[1] * row_bytes,
      2.0 * static_cast<double>(tokens) * static_cast<double>(q.shape[1]) * seen *
          static_cast<double>(q.shape[2] + attention_value_dims(query))};
}

inline AttentionProblem attention_problem(const KernelArgs& args) {
  using namespace attention_input;
  const auto& params = args.params<pavo_attention_params>();
  const Operand q = args.input(kQ), k = args.input(kK), v = args.input(kV), out = args.output(0);
  const Operand pages = args.input(kPageTable), mask = args.input(kMask);
  const Operand list = args.input(kRowList);
  AttentionProblem problem{};
  problem.q = q.as<float>();
  problem.out = out.as<float>();
  problem.k = kv_pool(*k.tensor, k.data);
  problem.v = v ? kv_pool(*v.tensor, v.data) : problem.k;
  problem.q_rows = row_map(*q.tensor);
  problem.out_rows = row_map(*out.tensor);
  problem.rows = args.input(kRows).as<int32_t>();
  problem.row_seq = args.input(kRowSeq).as<int32_t>();
  problem.seq_rows = args.input(kSeqRows).as<int32_t>();
  problem.lengths = args.input(kLengths).as<int32_t>();
  problem.page_table = pages.as<int32_t>();
  problem.sinks = args.input(kSinks).as<float>();
  problem.slopes = args.input(kSlopes).as<float>();
  problem.mask = mask.as<float>();
  problem.row_list = list.as<int32_t>();
  problem.page_table_stride = stride_bytes(*pages.tensor, 0) / 4;
  problem.mask_stride = mask ? stride_bytes(*mask.tensor, 0) / 4 : 0;
  problem.list_stride = list ? stride_bytes(*list.tensor, 0) / 4 : 0;
  problem.tokens = static_cast<int32_t>(q.dim(0));
  problem.heads = static_cast<int32_t>(q.dim(1));
  problem.group = problem.heads / problem.k.heads;
  problem.sequences = static_cast<int32_t>(args.input(kLengths).dim(0));
  problem.pages = static_cast<int32_t>(pages.dim(1));
  problem.mask_columns = mask ? static_cast<int32_t>(mask.dim(1)) : 0;
  problem.list_columns = list ? static_cast<int32_t>(list.dim(1)) : 0;
  problem.key_dims = static_cast<int32_t>(q.dim(2));
  problem.value_dims = static_cast<int32_t>(out.dim(2));
  problem.causal = params.causal;
  problem.window = params.window;
  problem.scale = params.scale;
  problem.softcap = params.softcap;
  problem.splits = 1;
  return problem;
}

}  // namespace pavo::cuda
