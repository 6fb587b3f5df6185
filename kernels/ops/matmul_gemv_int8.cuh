// matmul_gemv_int8: up to 16 tokens, quantised weights, int8 activations, dot4 (matmul_int8.cuh,
// matmul_gemv.cuh). Two launches: the activations, then the products.
//
//   out += d_x * (scale * sum(q_w * q_x) + offset * sum(q_x)), for each 16 values
#pragma once

#include "kernels/ops/matmul_gemv.cuh"
#include "kernels/ops/matmul_int8.cuh"

namespace pavo::cuda {

// The products of one slice of kRows rows with their activations.
template <typename Arch, typename Slice, int kRows, int kTokens>
__device__ __forceinline__ void gemv_int8_slice(
    const Slice (&w)[kRows],
    const Int8Activations& x,
    const int32_t (&x_rows)[kTokens],
    int32_t slice,
    float (&sums)[kRows][kTokens]) {
#pragma unroll
  for (int run = 0; run < Slice::kRuns; ++run) {
    const int32_t x_run = Slice::run_start(slice, run) / 16;
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
      // Through the read-only path: plain loads of Pascal would go to L2 each time.
      const uint4 quants = __ldg(x.quants + x_rows[t] + x_run);
      const float2 scales = __ldg(x.scales + x_rows[t] + x_run);
#pragma unroll
      for (int i = 0; i < kRows; ++i) {
        const float dot = dot_value(run_dot<Arch>(w[i], run, quants, kDotStart));
        sums[i][t] = fmaf(w[i].scale(run) * scales.x, dot, sums[i][t]);
        if constexpr (Slice::kHasOffset) {
          sums[i][t] = fmaf(w[i].offset(run), scales.y, sums[i][t]);
        }
      }
    }
  }
}

template <typename K, int32_t kType, int kTokens>
__global__ void __launch_bounds__(K::kThreads, kGemvMinBlocks<kTokens>)
    matmul_gemv_int8_kernel(MatmulData data, Int8Activations x, GemvGrid grid) {
  using Slice = WeightSlice<kType>;
  constexpr int kRows = kGemvRows<kTokens>;
  const GemvPlace place = gemv_place<kTokens>(grid);
  // Rows and tokens beyond the last one are computed as the last one, and not stored.
  const std::byte* rows[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int64_t row = place.row + i < data.rows ? place.row + i : data.rows - 1;
    rows[i] = data.w + row * data.layout.row_bytes;
  }
  int32_t x_rows[kTokens];
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    const int64_t token = place.token + t < data.tokens ? place.token + t : data.tokens - 1;
    x_rows[t] = static_cast<int32_t>(token * x.row_runs);
  }
  const auto slices = static_cast<int32_t>(slice_count<Slice>(data.columns));
  float sums[kRows][kTokens] = {};
  for (int32_t s = place.slice; s < slices; s += place.slice_step) {
    Slice w[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      w[i].template load<typename K::Chip>(rows[i], data.layout, s);
    }
    gemv_int8_slice<typename K::Chip>(w, x, x_rows, s, sums);
  }
  gemv_store<kTokens>(data, grid, place, sums);
}

template <typename Arch>
struct MatmulGemvInt8 {
  using Chip = Arch;
  static constexpr const char* kName = "matmul_gemv_int8";
  static constexpr int32_t kOp = pavo_op_matmul;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = kGemvThreads;
  static constexpr int kMinBlocksPerSm = kGemvMinBlocks<1>;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    return matmul_supports_int8(query, verdict) && check.dim_range(0, 0, 0, kGemvMaxTokens);
  }
  static int64_t workspace_bytes(const NodeQuery& query) { return int8_activation_bytes(query); }
  static Cost cost(const NodeQuery& query) { return matmul_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const MatmulData data = matmul_data(args);
    const Int8Activations x = int8_activations(args, data);
    cudaError_t error = launch_quantise<MatmulGemvInt8>(args, data, x);
    if (error != cudaSuccess) {
      return error;
    }
    for_type(QuantisedTypes{}, args.input(1).tensor->type, [&](auto type) {
      constexpr int32_t kType = decltype(type)::value;
      error = gemv_launch(
          data,
          slice_count<WeightSlice<kType>>(data.columns),
          args.query.caps.sm_count,
          [&](const GemvGrid& grid, uint32_t blocks, auto tokens) {
            return args.launcher.launch(
                kName,
                matmul_gemv_int8_kernel<MatmulGemvInt8, kType, decltype(tokens)::value>,
                dim3(blocks),
                dim3(kThreads),
                0,
                data,
                x,
                grid);
          });
    });
    return error;
  }
};

template <typename Arch>
KernelList matmul_gemv_int8_kernels() {
  static_assert(Arch::kHasDot4);
  static constexpr Kernel kKernels[] = {entry<MatmulGemvInt8<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
