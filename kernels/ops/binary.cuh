// binary: out = a (kind) b, b broadcast to a's shape. kind: add, sub, mul.
//
// a, out: f32 [..], rows anywhere; b: activation or dense f32 weight whose dimensions are a's or 1,
// leading ones may lack. An element depends on its own place alone, so out may lie on a, and on b
// where b is not broadcast. Exact: one rounding an element.
#pragma once

#include "kernels/common/checks.h"
#include "kernels/common/entry.h"
#include "kernels/common/rows.h"
#include "kernels/common/vec.cuh"

namespace pavo::cuda {

struct BinaryData {
  const float* a;
  const float* b;
  float* out;
  RowMap a_rows, b_rows, out_rows;  // b_rows: a's shape, stride 0 where b is broadcast
  int64_t b_column_stride;          // 1, or 0 for a broadcast last dimension
  int32_t kind;
};

// b seen with a's shape.
inline RowMap broadcast_map(const pavo_tensor& a, const pavo_tensor& b) {
  pavo_tensor view = a;
  view.role = PAVO_ROLE_ACTIVATION;
  for (int32_t i = 0; i < a.rank; ++i) {
    const int32_t from = i - (a.rank - b.rank);
    view.stride[i] = from >= 0 && b.shape[from] != 1 ? stride_bytes(b, from) : 0;
  }
  return row_map(view);
}

inline BinaryData binary_data(const KernelArgs& args) {
  const Operand a = args.input(0), b = args.input(1), out = args.output(0);
  BinaryData data{};
  data.a = a.as<float>();
  data.b = b.as<float>();
  data.out = out.as<float>();
  data.a_rows = row_map(*a.tensor);
  data.b_rows = broadcast_map(*a.tensor, *b.tensor);
  data.out_rows = row_map(*out.tensor);
  data.b_column_stride = b.tensor->rank > 0 && b.tensor->shape[b.tensor->rank - 1] != 1 ? 1 : 0;
  data.kind = args.params<pavo_binary_params>().kind;
  return data;
}

__device__ __forceinline__ float binary_value(int32_t kind, float a, float b) {
  switch (kind) {
    case PAVO_BINARY_ADD:
      return a + b;
    case PAVO_BINARY_SUB:
      return a - b;
    default:
      return a * b;
  }
}

// One thread an element, in steps of the grid.
template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    binary_generic_kernel(BinaryData data) {
  const int64_t columns = data.a_rows.columns;
  const int64_t count = data.a_rows.rows * columns;
  const int64_t step = int64_t{gridDim.x} * K::kThreads;
  for (int64_t i = int64_t{blockIdx.x} * K::kThreads + threadIdx.x; i < count; i += step) {
    const int64_t row = i / columns;
    const int64_t column = i % columns;
    const float a = data.a[data.a_rows.offset(row) + column];
    const float b = data.b[data.b_rows.offset(row) + column * data.b_column_stride];
    data.out[data.out_rows.offset(row) + column] = binary_value(data.kind, a, b);
  }
}

template <typename Arch>
struct BinaryGeneric {
  static constexpr const char* kName = "binary_generic";
  static constexpr int32_t kOp = pavo_op_binary;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 6;    // 8 leave 32 registers, and sm_70 spills
  static constexpr int64_t kMaxBlocks = 4096;  // enough for any chip; the rest is the loop's

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    const uint32_t out = check.output(0);
    if (!check.present(0) || !check.present(1) || !check.activations({0, out}) ||
        !check.same_shape(out, 0) ||
        !check.param_range(
            offsetof(pavo_binary_params, kind),
            "kind",
            query.params<pavo_binary_params>().kind,
            PAVO_BINARY_ADD,
            PAVO_BINARY_MUL)) {
      return false;
    }
    return supports_b(query, check, verdict);
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) {
    return {operand_bytes(query), static_cast<double>(sdk::element_count(*query.input(0)))};
  }
  static cudaError_t launch(const KernelArgs& args) {
    const BinaryData data = binary_data(args);
    const int64_t blocks = blocks_for(data.a_rows.rows * data.a_rows.columns, kThreads);
    return args.launcher.launch(
        kName,
        binary_generic_kernel<BinaryGeneric>,
        dim3(static_cast<uint32_t>(blocks < kMaxBlocks ? blocks : kMaxBlocks)),
        dim3(kThreads),
        0,
        data);
  }

 private:
  static bool supports_b(const NodeQuery& query, Checker& check, pavo_verdict* verdict) {
    const pavo_tensor& a = *query.input(0);
    const pavo_tensor& b = *query.input(1);
    if (b.role == PAVO_ROLE_WEIGHT) {
      if (b.uses != PAVO_USE_DENSE) {
        return sdk::refuse(
            verdict,
            PAVO_REASON_OPERAND,
            1,
            -1,
            PAVO_USE_DENSE,
            b.uses,
            "expected a weight of dense use only, got uses %u",
            b.uses);
      }
      if (!check.type(1, {PAVO_TYPE_F32, PAVO_TYPE_F16, PAVO_TYPE_BF16})) {
        return false;
      }
    } else if (!check.activations({1})) {
      return false;
    }
    if (b.rank > a.rank) {
      return check.rank(1, a.rank);
    }
    for (int32_t i = 0; i < b.rank; ++i) {
      if (b.shape[i] != 1 && !check.dim(1, i, a.shape[i + a.rank - b.rank], "as a, or 1")) {
        return false;
      }
    }
    return true;
  }
};

// Vectors of four columns. Grid: x over a row, y over rows in steps.
template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    binary_rows_kernel(BinaryData data) {
  const int64_t column = 4 * (int64_t{blockIdx.x} * K::kThreads + threadIdx.x);
  if (column >= data.a_rows.columns) {
    return;
  }
  for (int64_t row = blockIdx.y; row < data.a_rows.rows; row += gridDim.y) {
    const float4 a = load4(data.a + data.a_rows.offset(row) + column);
    const float4 b = load4(data.b + data.b_rows.offset(row) + column);
    store4(data.out + data.out_rows.offset(row) + column, map4(a, b, [&](float x, float y) {
             return binary_value(data.kind, x, y);
           }));
  }
}

template <typename Arch>
struct BinaryRows {
  static constexpr const char* kName = "binary_rows";
  static constexpr int32_t kOp = pavo_op_binary;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocksPerSm = 12;  // 16 leave 32 registers and spill

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    if (!BinaryGeneric<Arch>::supports(query, verdict) || !check.rank_at_least(0, 1) ||
        !check.rank_at_least(1, 1)) {
      return false;
    }
    const pavo_tensor& a = *query.input(0);
    const int32_t last = a.rank - 1;
    return check.dim_range(0, last, 4, 4 * kThreads * int64_t{kMaxGridX}) &&
           check.dim_multiple(0, last, 4) &&
           check.dim(1, query.input(1)->rank - 1, a.shape[last], "columns of a");
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) { return BinaryGeneric<Arch>::cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const BinaryData data = binary_data(args);
    if (!aligned16(data.a, data.b, data.out) || !rows_aligned16(data.a_rows) ||
        !rows_aligned16(data.b_rows) || !rows_aligned16(data.out_rows)) {
      return BinaryGeneric<Arch>::launch(args);
    }
    const int64_t rows = data.a_rows.rows;
    return args.launcher.launch(
        kName,
        binary_rows_kernel<BinaryRows>,
        dim3(
            static_cast<uint32_t>(blocks_for(data.a_rows.columns, 4 * kThreads)),
            static_cast<uint32_t>(rows < kMaxGridYz ? rows : kMaxGridYz)),
        dim3(kThreads),
        0,
        data);
  }
};

template <typename Arch>
KernelList binary_kernels() {
  static constexpr Kernel kKernels[] = {
      entry<BinaryRows<Arch>, Arch>(), entry<BinaryGeneric<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
