// matmul_gemv_half: up to 16 tokens, quantised weights, f16 activations, half2 products
// (matmul_half.cuh, matmul_gemv.cuh). Two launches: the activations, in the order in which lanes
// read them, then the products.
//
// At most 16 products are added in f16, exact bytes times activations; scales and all further sums
// are f32.
#pragma once

#include "kernels/ops/matmul_gemv.cuh"
#include "kernels/ops/matmul_half.cuh"

namespace pavo::cuda {

// [slice / 32][run][half of the run][slice % 32] vectors of eight values: a warp reads 512 bytes in
// a row whatever the type's slices are.
template <typename Slice>
struct HalfLaneOrder {
  static constexpr int kNext = 32;
  static PAVO_HOST_DEVICE int32_t vector(int32_t slice, int run) {
    return (slice / 32 * Slice::kRuns + run) * 64 + slice % 32;
  }
  static int64_t token_vectors(int64_t columns) {
    return (slice_count<Slice>(columns) + 31) / 32 * 64 * Slice::kRuns;
  }
};

// Products of eight values of each row and token.
template <int kTokens, typename Slice>
__device__ __forceinline__ void gemv_half_vector(
    const Slice (&w)[kGemvRows],
    const uint4* x,
    int32_t x_stride,
    int run,
    int half,
    uint32_t (&sums)[kGemvRows * kTokens]) {
  uint2 values[kGemvRows][2];
#pragma unroll
  for (int i = 0; i < kGemvRows; ++i) {
    values[i][0] = slice_halves(w[i], run, 2 * half);
    values[i][1] = slice_halves(w[i], run, 2 * half + 1);
  }
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    // Through the read-only path: plain loads of Pascal would go to L2 each time.
    const uint4 xs = __ldg(x + t * x_stride);
#pragma unroll
    for (int i = 0; i < kGemvRows; ++i) {
      uint32_t& sum = sums[i * kTokens + t];
      sum = half2_fma(values[i][0].x, xs.x, sum);
      sum = half2_fma(values[i][0].y, xs.y, sum);
      sum = half2_fma(values[i][1].x, xs.z, sum);
      sum = half2_fma(values[i][1].y, xs.w, sum);
    }
  }
}

template <int kTokens, typename Slice>
__device__ __forceinline__ void gemv_half_slice(
    const Slice (&w)[kGemvRows],
    const HalfActivations& x,
    int32_t token,
    int32_t slice,
    float (&sums)[kGemvRows * kTokens]) {
  const uint4* halves = x.halves + int64_t{token} * x.token_vectors;
#pragma unroll 1
  for (int run = 0; run < Slice::kRuns; ++run) {
    const uint4* vector = halves + HalfLaneOrder<Slice>::vector(slice, run);
    uint32_t products[kGemvRows * kTokens] = {};
    gemv_half_vector<kTokens>(w, vector, x.token_vectors, run, 0, products);
    gemv_half_vector<kTokens>(
        w, vector + HalfLaneOrder<Slice>::kNext, x.token_vectors, run, 1, products);
    const int32_t x_run = token * x.token_runs + Slice::run_start(slice, run) / 16;
#pragma unroll
    for (int t = 0; t < kTokens; ++t) {
      const float sum_x = Slice::kHasOffset ? __ldg(x.sums + x_run + t * x.token_runs) : 0.0f;
#pragma unroll
      for (int i = 0; i < kGemvRows; ++i) {
        float& sum = sums[i * kTokens + t];
        sum = fmaf(w[i].scale(run), half2_sum(products[i * kTokens + t]), sum);
        if constexpr (Slice::kHasOffset) {
          sum = fmaf(w[i].offset(run), sum_x, sum);
        }
      }
    }
  }
}

// As kGemvMinBlocks; for eight tokens, offsets or a scale a run need more registers.
template <typename Slice, int kTokens>
constexpr int kGemvHalfMinBlocks = kTokens == 8 && (Slice::kHasOffset || Slice::kScaleValues < 32)
                                       ? 2
                                       : kGemvMinBlocks<kTokens>;

template <typename K, int32_t kType, int kTokens>
__global__ void __launch_bounds__(K::kThreads, kGemvHalfMinBlocks<WeightSlice<kType>, kTokens>)
    matmul_gemv_half_kernel(MatmulData data, HalfActivations x, GemvGrid grid) {
  using Slice = WeightSlice<kType>;
  const GemvPlace place = gemv_place<kTokens>(grid);
  // Rows beyond the last one are computed as the last one, and not stored; tokens likewise.
  const std::byte* rows[kGemvRows];
#pragma unroll
  for (int i = 0; i < kGemvRows; ++i) {
    const int64_t row = place.row + i < data.rows ? place.row + i : data.rows - 1;
    rows[i] = data.w + row * data.layout.row_bytes;
  }
  const auto token = static_cast<int32_t>(place.token);
  const auto slices = static_cast<int32_t>(slice_count<Slice>(data.columns));
  float sums[kGemvRows * kTokens] = {};
  for (int32_t s = place.slice; s < slices; s += place.slice_step) {
    Slice w[kGemvRows];
#pragma unroll
    for (int i = 0; i < kGemvRows; ++i) {
      w[i].template load<typename K::Chip>(rows[i], data.layout, s);
    }
    gemv_half_slice<kTokens>(w, x, token, s, sums);
  }
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    const float scale = x.scales[token + t];
#pragma unroll
    for (int i = 0; i < kGemvRows; ++i) {
      sums[i * kTokens + t] *= scale;
    }
  }
  gemv_store<kTokens>(data, grid, place, sums);
}

template <typename Arch>
struct MatmulGemvHalf {
  using Chip = Arch;
  static constexpr const char* kName = "matmul_gemv_half";
  static constexpr int32_t kOp = pavo_op_matmul;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = kGemvThreads;
  static constexpr int kMinBlocksPerSm = 4;  // the helper's; the product's: kGemvMinBlocks

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    return matmul_supports_rounded(query, verdict) && check.dim_range(0, 0, 0, kGemvMaxTokens);
  }
  static int64_t workspace_bytes(const NodeQuery& query) {
    const pavo_tensor& x = *query.input(0);
    int64_t bytes = 0;
    for_type(QuantisedTypes{}, query.input(1)->type, [&](auto type) {
      using Order = HalfLaneOrder<WeightSlice<decltype(type)::value>>;
      bytes = half_activation_bytes(x.shape[0], x.shape[1], Order::token_vectors(x.shape[1]));
    });
    return bytes;
  }
  static Cost cost(const NodeQuery& query) { return matmul_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const MatmulData data = matmul_data(args);
    cudaError_t error = cudaSuccess;
    for_type(QuantisedTypes{}, args.input(1).tensor->type, [&](auto type) {
      constexpr int32_t kType = decltype(type)::value;
      using Slice = WeightSlice<kType>;
      using Order = HalfLaneOrder<Slice>;
      const HalfActivations x = half_activations(args, data, Order::token_vectors(data.columns));
      error = launch_halve<MatmulGemvHalf, Slice, Order>(args, data, x);
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
                matmul_gemv_half_kernel<MatmulGemvHalf, kType, decltype(tokens)::value>,
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
KernelList matmul_gemv_half_kernels() {
  static_assert(Arch::kFastHalf);
  static constexpr Kernel kKernels[] = {entry<MatmulGemvHalf<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
