// matmul_gemv_int8: up to 16 tokens, quantised weights, int8 activations, dot4 (matmul_int8.cuh,
// matmul_gemv.cuh). Two launches: the activations, then the products.
//
//   out += d_x * (scale * sum(q_w * q_x) + offset * sum(q_x)), for each 16 values
#pragma once

#include "kernels/ops/matmul_gemv.cuh"
#include "kernels/ops/matmul_int8.cuh"

namespace pavo::cuda {

// d * sum of the q of kRuns runs from run `index` on, an even number if there are two.
template <int kRuns>
__device__ __forceinline__ float x_sum(const Int8Activations& x, int32_t index) {
  if constexpr (kRuns == 2) {
    const float2 halves = __ldg(reinterpret_cast<const float2*>(x.sums + index));
    return halves.x + halves.y;
  } else {
    return __ldg(x.sums + index);
  }
}

// The products of one slice of each row with the activations of every token.
template <typename Arch, int kTokens, typename Slice>
__device__ __forceinline__ void gemv_int8_slice(
    const Slice (&w)[kGemvRows],
    const Int8Activations& x,
    int32_t x_row,
    int32_t slice,
    float (&sums)[kGemvRows * kTokens]) {
  constexpr int kJoined = Slice::kJoinedRuns;
  // Runs one after the other, or all loads of x would come first and need too many registers.
#pragma unroll 1
  for (int first = 0; first < Slice::kRuns; first += kJoined) {
    const int32_t x_run = x_row + Slice::run_start(slice, first) / 16;
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
      // Through the read-only path: plain loads of Pascal would go to L2 each time.
      const int32_t index = x_run + t * x.row_runs;
      uint4 quants[kJoined];
#pragma unroll
      for (int run = 0; run < kJoined; ++run) {
        quants[run] = __ldg(x.quants + index + run);
      }
      const float scale = __ldg(x.scales + index / 2);
      const float sum_x = Slice::kHasOffset ? x_sum<kJoined>(x, index) : 0.0f;
#pragma unroll
      for (int i = 0; i < kGemvRows; ++i) {
        int32_t dot = kDotStart;
#pragma unroll
        for (int run = 0; run < kJoined; ++run) {
          dot = run_dot<Arch>(w[i], first + run, quants[run], dot);
        }
        float& sum = sums[i * kTokens + t];
        sum = fmaf(w[i].scale(first) * scale, dot_value(dot), sum);
        if constexpr (Slice::kHasOffset) {
          sum = fmaf(w[i].offset(first), sum_x, sum);
        }
      }
    }
  }
}

template <typename K, int32_t kType, int kTokens>
__global__ void __launch_bounds__(K::kThreads, kGemvMinBlocks<kTokens>)
    matmul_gemv_int8_kernel(MatmulData data, Int8Activations x, GemvGrid grid) {
  using Slice = WeightSlice<kType>;
  constexpr int kRows = kGemvRows;
  const GemvPlace place = gemv_place<kTokens>(grid);
  // Rows beyond the last one are computed as the last one, and not stored; tokens likewise.
  const std::byte* rows[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int64_t row = place.row + i < data.rows ? place.row + i : data.rows - 1;
    rows[i] = data.w + row * data.layout.row_bytes;
  }
  const auto x_row = static_cast<int32_t>(place.token) * x.row_runs;  // padded: all are there
  const auto slices = static_cast<int32_t>(slice_count<Slice>(data.columns));
  float sums[kRows * kTokens] = {};
  for (int32_t s = place.slice; s < slices; s += place.slice_step) {
    Slice w[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      w[i].template load<typename K::Chip>(rows[i], data.layout, s);
    }
    gemv_int8_slice<typename K::Chip, kTokens>(w, x, x_row, s, sums);
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
  static constexpr int kMinBlocksPerSm = 4;  // the helper's; the product's: kGemvMinBlocks

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    return matmul_supports_rounded(query, verdict) && check.dim_range(0, 0, 0, kGemvMaxTokens);
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
