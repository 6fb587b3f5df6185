// matmul_gemv_int8: up to 16 tokens, quantised weights, int8 activations, dot4 (matmul_int8.cuh,
// matmul_gemv.cuh). Two launches: the activations, then the products.
//
//   out += d_x * (scale * sum(q_w * q_x) + offset * sum(q_x)), for each 16 values
#pragma once

#include "kernels/ops/matmul_gemv.cuh"
#include "kernels/ops/matmul_int8.cuh"

namespace pavo::cuda {

// The product of one slice of a row with as many activations, but for the scale of these.
template <typename Arch, typename Slice>
__device__ __forceinline__ float gemv_int8_dot(
    const Slice& w, const uint4 (&quants)[Slice::kRuns]) {
  if constexpr (Slice::kRunValues * Slice::kRuns > Slice::kScaleValues) {
    static_assert(Slice::kRuns == 2, "a scale a run");
    const float first = dot_value(run_dot<Arch>(w, 0, quants[0], kDotStart));
    const float second = dot_value(run_dot<Arch>(w, 1, quants[1], kDotStart));
    return fmaf(w.scale(1), second, w.scale(0) * first);
  } else {
    int32_t dot = kDotStart;
#pragma unroll
    for (int run = 0; run < Slice::kRuns; ++run) {
      dot = run_dot<Arch>(w, run, quants[run], dot);
    }
    return w.scale(0) * dot_value(dot);
  }
}

// The products of one slice of each row with the activations of every token.
template <typename Arch, int kTokens, typename Slice>
__device__ __forceinline__ void gemv_int8_slice(
    const Slice (&w)[kGemvRows],
    const Int8Activations& x,
    int32_t token,
    int32_t slice,
    float (&sums)[kGemvRows * kTokens]) {
  const uint4* vectors =
      x.quants + token * x.token_vectors + int8_vector(Slice::kRuns * slice, Slice::kRuns);
  const float2* scales = x.scales + token * x.token_blocks + Slice::kRuns * slice / 2;
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    // Through the read-only path: plain loads of Pascal would go to L2 each time.
    uint4 quants[Slice::kRuns];
#pragma unroll
    for (int run = 0; run < Slice::kRuns; ++run) {
      quants[run] = __ldg(vectors + 32 * run);
    }
    const float2 scale = __ldg(scales);
    vectors += x.token_vectors;
    scales += x.token_blocks;
#pragma unroll
    for (int i = 0; i < kGemvRows; ++i) {
      float& sum = sums[i * kTokens + t];
      sum = fmaf(scale.x, gemv_int8_dot<Arch>(w[i], quants), sum);
      if constexpr (Slice::kHasOffset) {
        sum = fmaf(w[i].offset(0), scale.y, sum);
      }
    }
  }
}

// As kGemvMinBlocks; for eight tokens, offsets need more registers: those of q4_1 only on sm_70.
template <typename Arch, int32_t kType, int kTokens>
constexpr int kGemvInt8MinBlocks = kTokens == 8 && (kType == PAVO_TYPE_Q4_K ||
                                                    (kType == PAVO_TYPE_Q4_1 && Arch::kFastHalf))
                                       ? 2
                                       : kGemvMinBlocks<kTokens>;

template <typename K, int32_t kType, int kTokens>
__global__ void __launch_bounds__(K::kThreads, kGemvInt8MinBlocks<typename K::Chip, kType, kTokens>)
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
  const auto token = static_cast<int32_t>(place.token);  // padded: all of x are there
  const auto slices = static_cast<int32_t>(slice_count<Slice>(data.columns));
  float sums[kRows * kTokens] = {};
  for (int32_t s = place.slice; s < slices; s += place.slice_step) {
    Slice w[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      w[i].template load<typename K::Chip>(rows[i], data.layout, s);
    }
    gemv_int8_slice<typename K::Chip, kTokens>(w, x, token, s, sums);
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
    cudaError_t error = cudaSuccess;
    for_type(QuantisedTypes{}, args.input(1).tensor->type, [&](auto type) {
      constexpr int32_t kType = decltype(type)::value;
      using Slice = WeightSlice<kType>;
      const Int8Activations x = int8_activations(args, data, Slice::kRuns);
      error = launch_quantise<MatmulGemvInt8>(args, data, x);
      if (error != cudaSuccess) {
        return;
      }
      error = gemv_launch(
          data,
          slice_count<Slice>(data.columns),
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
