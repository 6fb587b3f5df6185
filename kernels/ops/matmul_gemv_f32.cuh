// matmul_gemv_f32: up to 16 tokens, weights of any type, f32 activations and products
// (matmul_gemv.cuh). Two launches: the first copies x into the order in which lanes read it, so
// that every load of the second is 512 consecutive bytes a warp, whatever the type's slices, the
// strides and the alignment of x are.
#pragma once

#include "kernels/ops/matmul_gemv.cuh"

namespace pavo::cuda {

// In the workspace: [token][slice / 32][run][quad][slice % 32] vectors of four values; zeros beyond
// the end of the row.
template <typename Slice>
struct LaneOrder {
  static constexpr int kQuads = Slice::kRunValues / 4;
  static constexpr int kSliceVectors = Slice::kRuns * kQuads;

  // Vectors of one token; slices are rounded up to whole warps.
  static PAVO_HOST_DEVICE int64_t token_vectors(int64_t columns) {
    return (slice_count<Slice>(columns) + 31) / 32 * 32 * kSliceVectors;
  }
  // Of the first vector of a slice; its others follow every 32.
  static PAVO_HOST_DEVICE int64_t position(int32_t slice) {
    return int64_t{slice / 32} * 32 * kSliceVectors + slice % 32;
  }
};

// One thread a vector.
template <typename K, int32_t kType>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    matmul_lane_order_kernel(MatmulData data, float4* out) {
  using Slice = WeightSlice<kType>;
  using Order = LaneOrder<Slice>;
  const int64_t token_vectors = Order::token_vectors(data.columns);
  const int64_t count = data.tokens * token_vectors;
  const int64_t step = int64_t{gridDim.x} * K::kThreads;
  for (int64_t i = int64_t{blockIdx.x} * K::kThreads + threadIdx.x; i < count; i += step) {
    const int64_t token = i / token_vectors;
    const int64_t vector = i % token_vectors;
    const int64_t group = vector / (32 * Order::kSliceVectors);
    const auto in_slice = static_cast<int>(vector / 32 % Order::kSliceVectors);
    const int64_t slice = group * 32 + vector % 32;
    const int64_t column =
        Slice::run_start(slice, in_slice / Order::kQuads) + in_slice % Order::kQuads * 4;
    const float* x = data.x + data.x_rows.offset(token);
    const auto value = [&](int64_t k) { return k < data.columns ? x[k] : 0.0f; };
    out[i] = make_float4(value(column), value(column + 1), value(column + 2), value(column + 3));
  }
}

// As kGemvMinBlocks; 16 values of eight tokens need more registers.
template <int kTokens>
constexpr int kGemvF32MinBlocks = kTokens == 8 ? 2 : kGemvMinBlocks<kTokens>;

template <typename K, int32_t kType, int kTokens>
__global__ void __launch_bounds__(K::kThreads, kGemvF32MinBlocks<kTokens>)
    matmul_gemv_f32_kernel(MatmulData data, const float4* x, GemvGrid grid) {
  using Slice = WeightSlice<kType>;
  using Order = LaneOrder<Slice>;
  constexpr int kRows = kGemvRows;
  const GemvPlace place = gemv_place<kTokens>(grid);
  // Rows and tokens beyond the last one are computed as the last one, and not stored.
  const std::byte* rows[kRows];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    const int64_t row = place.row + i < data.rows ? place.row + i : data.rows - 1;
    rows[i] = data.w + row * data.layout.row_bytes;
  }
  const float4* x_rows[kTokens];
#pragma unroll
  for (int t = 0; t < kTokens; ++t) {
    const int64_t token = place.token + t < data.tokens ? place.token + t : data.tokens - 1;
    x_rows[t] = x + token * Order::token_vectors(data.columns);
  }
  const auto slices = static_cast<int32_t>(slice_count<Slice>(data.columns));
  float sums[kRows * kTokens] = {};
  for (int32_t s = place.slice; s < slices; s += place.slice_step) {
    Slice w[kRows];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      w[i].template load<typename K::Chip>(rows[i], data.layout, s);
    }
    const int64_t position = Order::position(s);
#pragma unroll 1  // else all loads of x come first, and their registers are not there
    for (int run = 0; run < Slice::kRuns; ++run) {
#pragma unroll
      for (int quad = 0; quad < Order::kQuads; ++quad) {
        float4 values[kRows];
#pragma unroll
        for (int i = 0; i < kRows; ++i) {
          values[i] = slice_values(w[i], run, quad);
        }
        const int64_t vector = position + 32 * (run * Order::kQuads + quad);
#pragma unroll
        for (int t = 0; t < kTokens; ++t) {
          // Through the read-only path: plain loads of Pascal would go to L2 each time.
          const float4 xs = __ldg(x_rows[t] + vector);
#pragma unroll
          for (int i = 0; i < kRows; ++i) {
            float& sum = sums[i * kTokens + t];
            sum = fmaf(values[i].x, xs.x, sum);
            sum = fmaf(values[i].y, xs.y, sum);
            sum = fmaf(values[i].z, xs.z, sum);
            sum = fmaf(values[i].w, xs.w, sum);
          }
        }
      }
    }
  }
  gemv_store<kTokens>(data, grid, place, sums);
}

template <typename Arch>
struct MatmulGemvF32 {
  using Chip = Arch;
  static constexpr const char* kName = "matmul_gemv_f32";
  static constexpr int32_t kOp = pavo_op_matmul;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = kGemvThreads;
  static constexpr int kMinBlocksPerSm = 4;  // the helper's; the product's: kGemvMinBlocks

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    return matmul_supports_tiles(query, verdict) && check.dim_range(0, 0, 0, kGemvMaxTokens);
  }
  static int64_t workspace_bytes(const NodeQuery& query) {
    int64_t vectors = 0;
    for_type(WeightTypes{}, query.input(1)->type, [&](auto type) {
      using Order = LaneOrder<WeightSlice<decltype(type)::value>>;
      vectors = query.input(0)->shape[0] * Order::token_vectors(query.input(0)->shape[1]);
    });
    return vectors * static_cast<int64_t>(sizeof(float4));
  }
  static Cost cost(const NodeQuery& query) { return matmul_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const MatmulData data = matmul_data(args);
    auto* x = reinterpret_cast<float4*>(args.workspace);
    cudaError_t error = cudaSuccess;
    for_type(WeightTypes{}, args.input(1).tensor->type, [&](auto type) {
      constexpr int32_t kType = decltype(type)::value;
      error = launch_lane_order<kType>(args, data, x);
      if (error != cudaSuccess) {
        return;
      }
      error = gemv_launch(
          data,
          slice_count<WeightSlice<kType>>(data.columns),
          args.query.caps.sm_count,
          [&](const GemvGrid& grid, uint32_t blocks, auto tokens) {
            return args.launcher.launch(
                kName,
                matmul_gemv_f32_kernel<MatmulGemvF32, kType, decltype(tokens)::value>,
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

 private:
  template <int32_t kType>
  static cudaError_t launch_lane_order(
      const KernelArgs& args, const MatmulData& data, float4* out) {
    constexpr int64_t kMaxBlocks = 4096;  // the rest is the kernel's loop
    const int64_t vectors =
        data.tokens * LaneOrder<WeightSlice<kType>>::token_vectors(data.columns);
    const int64_t blocks = blocks_for(vectors, kThreads);
    return args.launcher.launch(
        "matmul_lane_order",
        matmul_lane_order_kernel<MatmulGemvF32, kType>,
        dim3(static_cast<uint32_t>(blocks < kMaxBlocks ? blocks : kMaxBlocks)),
        dim3(kThreads),
        0,
        data,
        out);
  }
};

template <typename Arch>
KernelList matmul_gemv_f32_kernels() {
  static constexpr Kernel kKernels[] = {entry<MatmulGemvF32<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
