// norm: s = x (+ residual); y = normalise(s) * (weight + weight_offset) + bias, row by row.
//
//   rms    s / sqrt(mean(s^2) + eps)
//   layer  (s - mean) / sqrt(var + eps)
//   l2     s / max(|s|, eps)
//
// x, residual, y, s: f32 [.., N], rows anywhere; weight, bias: dense f32 [N]. One block owns one
// row. Sums are f32: each thread adds its own columns in order, then a tree over the block. An
// output may lie on x or residual: an element is written after the last read of its place.
#pragma once

#include "kernels/common/checks.h"
#include "kernels/common/entry.h"
#include "kernels/common/reduce.cuh"
#include "kernels/common/rows.h"
#include "kernels/common/vec.cuh"

namespace pavo::cuda {

struct NormData {
  const float* x;
  const float* weight;    // NULL: 1
  const float* bias;      // NULL: 0
  const float* residual;  // NULL: 0
  float* y;
  float* s;  // NULL: not asked for
  RowMap x_rows, residual_rows, y_rows, s_rows;
  int64_t columns;
  int32_t kind;
  float eps;
  float weight_offset;
};

inline NormData norm_data(const KernelArgs& args) {
  const auto& params = args.params<pavo_norm_params>();
  const Operand x = args.input(0), weight = args.input(1), bias = args.input(2);
  const Operand residual = args.input(3), y = args.output(0), s = args.output(1);
  NormData data{};
  data.x = x.as<float>();
  data.weight = weight.as<float>();
  data.bias = bias.as<float>();
  data.residual = residual.as<float>();
  data.y = y.as<float>();
  data.s = s.as<float>();
  data.x_rows = row_map(*x.tensor);
  data.residual_rows = residual ? row_map(*residual.tensor) : RowMap{};
  data.y_rows = row_map(*y.tensor);
  data.s_rows = s ? row_map(*s.tensor) : RowMap{};
  data.columns = data.x_rows.columns;
  data.kind = params.kind;
  data.eps = params.eps;
  data.weight_offset = params.weight_offset;
  return data;
}

// What every variant asks of a norm.
inline bool norm_supports(const NodeQuery& query, pavo_verdict* verdict) {
  Checker check(query, verdict);
  const auto& params = query.params<pavo_norm_params>();
  const uint32_t y = check.output(0), s = check.output(1);
  if (!check.present(0) || !check.rank_at_least(0, 1) || !check.activations({0, 3, y, s}) ||
      !check.same_shape(3, 0) || !check.same_shape(y, 0) || !check.same_shape(s, 0)) {
    return false;
  }
  const pavo_tensor& x = *query.input(0);
  const int64_t columns = x.shape[x.rank - 1];
  return check.dense_weight(1, columns) && check.dense_weight(2, columns) &&
         check.param_range(
             offsetof(pavo_norm_params, kind), "kind", params.kind, PAVO_NORM_RMS, PAVO_NORM_L2) &&
         check.param_finite(offsetof(pavo_norm_params, eps), "eps", params.eps) &&
         check.param_finite(
             offsetof(pavo_norm_params, weight_offset), "weight_offset", params.weight_offset);
}

inline Cost norm_cost(const NodeQuery& query) {
  return {operand_bytes(query), 6.0 * static_cast<double>(sdk::element_count(*query.input(0)))};
}

// Factor of the centred row, from the sum of its squares.
__device__ __forceinline__ float norm_factor(const NormData& data, float square_sum) {
  if (data.kind == PAVO_NORM_L2) {
    return 1.0f / fmaxf(sqrtf(square_sum), data.eps);
  }
  return 1.0f / sqrtf(square_sum / static_cast<float>(data.columns) + data.eps);
}

// Every shape: the row is read again for each sum.
template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    norm_generic_kernel(NormData data) {
  const int64_t row = blockIdx.x;
  const float* x = data.x + data.x_rows.offset(row);
  const float* residual =
      data.residual == nullptr ? nullptr : data.residual + data.residual_rows.offset(row);
  const auto value = [&](int64_t i) { return residual == nullptr ? x[i] : x[i] + residual[i]; };

  float mean = 0.0f;
  if (data.kind == PAVO_NORM_LAYER) {
    float sum = 0.0f;
    for (int64_t i = threadIdx.x; i < data.columns; i += K::kThreads) {
      sum += value(i);
    }
    mean = block_reduce<Sum, K::kThreads>(sum) / static_cast<float>(data.columns);
  }
  float square_sum = 0.0f;
  for (int64_t i = threadIdx.x; i < data.columns; i += K::kThreads) {
    const float centred = value(i) - mean;
    square_sum = fmaf(centred, centred, square_sum);
  }
  const float factor = norm_factor(data, block_reduce<Sum, K::kThreads>(square_sum));

  float* y = data.y + data.y_rows.offset(row);
  float* s = data.s == nullptr ? nullptr : data.s + data.s_rows.offset(row);
  for (int64_t i = threadIdx.x; i < data.columns; i += K::kThreads) {
    const float sum = value(i);
    const float weight = data.weight == nullptr ? 1.0f : data.weight[i] + data.weight_offset;
    const float bias = data.bias == nullptr ? 0.0f : data.bias[i];
    if (s != nullptr) {
      s[i] = sum;
    }
    y[i] = fmaf((sum - mean) * factor, weight, bias);
  }
}

template <typename Arch>
struct NormGeneric {
  static constexpr const char* kName = "norm_generic";
  static constexpr int32_t kOp = pavo_op_norm;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 6;  // 8 leave 32 registers and spill

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    return norm_supports(query, verdict) &&
           (row_map(*query.input(0)).rows <= kMaxGridX || sdk::refuse(
                                                              verdict,
                                                              PAVO_REASON_SHAPE_RANGE,
                                                              0,
                                                              -1,
                                                              kMaxGridX,
                                                              0,
                                                              "more rows than a grid has"));
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) { return norm_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const NormData data = norm_data(args);
    if (data.columns == 0) {
      return cudaSuccess;
    }
    return args.launcher.launch(
        kName,
        norm_generic_kernel<NormGeneric>,
        dim3(static_cast<uint32_t>(data.x_rows.rows)),
        dim3(kThreads),
        0,
        data);
  }
};

// The row stays in registers between its sums: memory is read once, in vectors of four.
template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    norm_registers_kernel(NormData data) {
  const int64_t row = blockIdx.x;
  const float* x = data.x + data.x_rows.offset(row);
  const auto column = [](int i) { return 4 * (i * K::kThreads + static_cast<int>(threadIdx.x)); };
  const auto columns = static_cast<int>(data.columns);

  float4 held[K::kVectors];
#pragma unroll
  for (int i = 0; i < K::kVectors; ++i) {
    held[i] = column(i) < columns ? load4(x + column(i)) : float4{};
  }
  if (data.residual != nullptr) {
    const float* residual = data.residual + data.residual_rows.offset(row);
#pragma unroll
    for (int i = 0; i < K::kVectors; ++i) {
      if (column(i) < columns) {
        held[i] = map4(held[i], load4(residual + column(i)), Sum::join);
      }
    }
  }
  if (data.s != nullptr) {
    float* s = data.s + data.s_rows.offset(row);
#pragma unroll
    for (int i = 0; i < K::kVectors; ++i) {
      if (column(i) < columns) {
        store4(s + column(i), held[i]);
      }
    }
  }

  if (data.kind == PAVO_NORM_LAYER) {
    float sum = 0.0f;
#pragma unroll
    for (int i = 0; i < K::kVectors; ++i) {
      sum += sum4(held[i]);  // columns beyond the row hold 0
    }
    const float mean = block_reduce<Sum, K::kThreads>(sum) / static_cast<float>(columns);
#pragma unroll
    for (int i = 0; i < K::kVectors; ++i) {
      if (column(i) < columns) {
        held[i] = map4(held[i], [&](float value) { return value - mean; });
      }
    }
  }
  float square_sum = 0.0f;
#pragma unroll
  for (int i = 0; i < K::kVectors; ++i) {
    square_sum += sum4(map4(held[i], held[i], [](float a, float b) { return a * b; }));
  }
  const float factor = norm_factor(data, block_reduce<Sum, K::kThreads>(square_sum));

  float* y = data.y + data.y_rows.offset(row);
#pragma unroll
  for (int i = 0; i < K::kVectors; ++i) {
    if (column(i) >= columns) {
      continue;
    }
    float4 out = map4(held[i], [&](float value) { return value * factor; });
    if (data.weight != nullptr) {
      out = map4(out, load4(data.weight + column(i)), [&](float value, float weight) {
        return value * (weight + data.weight_offset);
      });
    }
    if (data.bias != nullptr) {
      out = map4(out, load4(data.bias + column(i)), Sum::join);
    }
    store4(y + column(i), out);
  }
}

// kVectorsPerThread bounds N: 256 threads, 4 columns each, so 1,024 columns a vector.
template <typename Arch, int kVectorsPerThread>
struct NormRegisters {
  static constexpr const char* kName =
      kVectorsPerThread == 2 ? "norm_registers_2" : "norm_registers_8";
  static constexpr int32_t kOp = pavo_op_norm;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = 256;
  static constexpr int kVectors = kVectorsPerThread;
  // 64 registers a thread hold 8 vectors and leave 32 for the rest.
  static constexpr int kMinBlocksPerSm = 4;
  static constexpr int64_t kMaxColumns = 4 * kThreads * kVectors;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    if (!NormGeneric<Arch>::supports(query, verdict)) {
      return false;
    }
    const int32_t last = query.input(0)->rank - 1;
    return check.dim_range(0, last, 4, kMaxColumns) && check.dim_multiple(0, last, 4);
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) { return norm_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const NormData data = norm_data(args);
    // Only the addresses of a run tell whether a view may be read in vectors.
    if (!aligned16(data.x, data.weight, data.bias, data.residual, data.y, data.s) ||
        !rows_aligned16(data.x_rows) || !rows_aligned16(data.residual_rows) ||
        !rows_aligned16(data.y_rows) || !rows_aligned16(data.s_rows)) {
      return NormGeneric<Arch>::launch(args);
    }
    return args.launcher.launch(
        kName,
        norm_registers_kernel<NormRegisters>,
        dim3(static_cast<uint32_t>(data.x_rows.rows)),
        dim3(kThreads),
        0,
        data);
  }
};

template <typename Arch>
KernelList norm_kernels() {
  static constexpr Kernel kKernels[] = {
      entry<NormRegisters<Arch, 2>, Arch>(),
      entry<NormRegisters<Arch, 8>, Arch>(),
      entry<NormGeneric<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
