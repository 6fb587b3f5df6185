// What the kernels of matmul share: operands, predicate, cost, and the launch by weight type.
//
//   out[t,n] = sum_k x[t,k] * w[n,k] (+ bias[n])
//
// x: f32 [T,K], rows anywhere; w: packed weight [N,K] of any type; bias: dense f32 [N]; out: f32
// [T,N], rows anywhere. Accumulators are f32. The families, best first (kernels.inc):
//
//   matmul_gemv_int8  T up to 16; quantised weights, int8 activations; chips with dot4
//   matmul_gemm_int8  any T; as before
//   matmul_gemv_half  T up to 16; quantised weights, f16 activations; sm_60
//   matmul_gemm_half  any T; as before
//   matmul_gemv_f32   T up to 16; f32 activations: dense weights, exact precision
//   matmul_gemm_f32   any T; as before
//   matmul_generic    any shape and layout
#pragma once

#include "kernels/common/checks.h"
#include "kernels/common/entry.h"
#include "kernels/common/rows.h"
#include "kernels/common/vec.cuh"
#include "kernels/common/weight_slices.cuh"

namespace pavo::cuda {

struct MatmulData {
  const float* x;
  const std::byte* w;
  const float* bias;  // NULL: 0
  float* out;
  RowMap x_rows, out_rows;
  WeightLayout layout;
  int64_t tokens;   // T
  int64_t columns;  // K
  int64_t rows;     // N
};

inline MatmulData matmul_data(const KernelArgs& args) {
  const Operand x = args.input(0), w = args.input(1), bias = args.input(2), out = args.output(0);
  MatmulData data{};
  data.x = x.as<float>();
  data.w = w.data;
  data.bias = bias.as<float>();
  data.out = out.as<float>();
  data.x_rows = row_map(*x.tensor);
  data.out_rows = row_map(*out.tensor);
  data.layout = weight_layout(w.tensor->type, w.dim(1));
  data.tokens = x.dim(0);
  data.columns = w.dim(1);
  data.rows = w.dim(0);
  return data;
}

// What every variant asks of a matmul.
inline bool matmul_supports(const NodeQuery& query, pavo_verdict* verdict) {
  Checker check(query, verdict);
  const uint32_t out = check.output(0);
  if (!check.present(0) || !check.present(1) || !check.activations({0, out}) || !check.rank(0, 2) ||
      !check.role(1, {PAVO_ROLE_WEIGHT}) || !check.rank(1, 2) || !check.rank(out, 2)) {
    return false;
  }
  const pavo_tensor& x = *query.input(0);
  const pavo_tensor& w = *query.input(1);
  if (!contains(WeightTypes{}, w.type)) {
    return check.type(1, {PAVO_TYPE_F32});
  }
  if ((w.uses & PAVO_USE_DENSE) != 0) {  // not packed
    return sdk::refuse(
        verdict,
        PAVO_REASON_OPERAND,
        1,
        -1,
        PAVO_USE_MATMUL,
        w.uses,
        "expected a weight without dense use, got uses %u",
        w.uses);
  }
  const auto& params = query.params<pavo_matmul_params>();
  return check.dim(1, 1, x.shape[1], "K of x") && check.dense_weight(2, w.shape[0]) &&
         check.dim(out, 0, x.shape[0], "T of x") && check.dim(out, 1, w.shape[0], "N of w") &&
         check.param_range(
             offsetof(pavo_matmul_params, precision),
             "precision",
             params.precision,
             PAVO_PRECISION_DEFAULT,
             PAVO_PRECISION_EXACT);
}

// In addition, for kernels with one block a tile of at least 16 tokens and 64 rows, or less where
// there are few tokens: the grid never overflows.
inline bool matmul_supports_tiles(const NodeQuery& query, pavo_verdict* verdict) {
  Checker check(query, verdict);
  return matmul_supports(query, verdict) && check.dim_range(0, 0, 0, int64_t{1} << 20) &&
         check.dim_range(1, 0, 0, int64_t{1} << 21) && check.dim_range(1, 1, 0, int64_t{1} << 30);
}

// In addition, for kernels whose activations are int8 or f16.
inline bool matmul_supports_rounded(const NodeQuery& query, pavo_verdict* verdict) {
  Checker check(query, verdict);
  if (!matmul_supports_tiles(query, verdict)) {
    return false;
  }
  const int32_t type = query.input(1)->type;
  return (contains(QuantisedTypes{}, type) || check.type(1, {PAVO_TYPE_Q8_0})) &&
         check.param_range(
             offsetof(pavo_matmul_params, precision),
             "precision",
             query.params<pavo_matmul_params>().precision,
             PAVO_PRECISION_DEFAULT,
             PAVO_PRECISION_DEFAULT);
}

inline Cost matmul_cost(const NodeQuery& query) {
  return {
      operand_bytes(query),
      2.0 * static_cast<double>(query.input(0)->shape[0]) *
          static_cast<double>(sdk::element_count(*query.input(1)))};
}

// Few tokens are padded with copies of the last one to what a GEMV takes at once.
constexpr int64_t padded_tokens(int64_t tokens) {
  return tokens <= 2 ? tokens : tokens <= 4 ? 4 : (tokens + 7) / 8 * 8;
}

__device__ __forceinline__ void matmul_store(
    const MatmulData& data, int64_t token, int64_t row, float sum) {
  data.out[data.out_rows.offset(token) + row] = data.bias == nullptr ? sum : sum + data.bias[row];
}

}  // namespace pavo::cuda
