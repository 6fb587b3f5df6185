// matmul_gemm_f32: any number of tokens, weights of any type, f32 activations and products
// (matmul_gemm.cuh). x is read value by value: it may lie at any address.
//
// Thread (r, t) of 16 x 16 makes rows 4r.. (and 64 + 4r..) and kTokens tokens from t * kTokens on.
// A step is 32 values in the order of the runs of the weight's slices, which for some types is not
// the row's; x is read in the same order.
#pragma once

#include "kernels/ops/matmul_gemm.cuh"

namespace pavo::cuda {

constexpr int kGemmF32Step = 32;

template <typename Shape>
struct F32Tile {
  // Four more: rows stay 16-byte aligned and begin in different banks.
  float w[kGemmF32Step][Shape::kTileRows + 4];
  float x[kGemmF32Step][Shape::kTileTokens + 4];
};

// One thread a run. What lies beyond the last row or slice becomes 0.
template <typename Arch, typename Slice, typename Shape>
__device__ __forceinline__ void load_f32_w(
    const MatmulData& data, int32_t first_row, int32_t step, F32Tile<Shape>& tile) {
  constexpr int kStepRuns = kGemmF32Step / Slice::kRunValues;
  const auto slices = static_cast<int32_t>(slice_count<Slice>(data.columns));
#pragma unroll
  for (int first = 0; first < Shape::kTileRows * kStepRuns; first += kGemmThreads) {
    const int unit = first + static_cast<int>(threadIdx.x);
    if (unit >= Shape::kTileRows * kStepRuns) {
      break;
    }
    const int r = unit % Shape::kTileRows;
    const int step_run = unit / Shape::kTileRows;
    const int32_t run_index = step * kStepRuns + step_run;
    const int32_t slice_index = run_index / Slice::kRuns;
    const bool present = first_row + r < data.rows && slice_index < slices;
    Slice slice{};
    if (present) {
      const std::byte* row = data.w + int64_t{first_row + r} * data.layout.row_bytes;
      slice.template load<Arch>(row, data.layout, slice_index);
    }
#pragma unroll
    for (int run = 0; run < Slice::kRuns; ++run) {
      if (run != run_index % Slice::kRuns) {  // unrolled: slices are indexed by constants only
        continue;
      }
#pragma unroll
      for (int quad = 0; quad < Slice::kRunValues / 4; ++quad) {
        const float4 values = present ? slice_values(slice, run, quad) : float4{};
        const int k = step_run * Slice::kRunValues + 4 * quad;
        tile.w[k][r] = values.x;
        tile.w[k + 1][r] = values.y;
        tile.w[k + 2][r] = values.z;
        tile.w[k + 3][r] = values.w;
      }
    }
  }
}

// One thread four values of a token.
template <typename Slice, typename Shape>
__device__ __forceinline__ void load_f32_x(
    const MatmulData& data, int32_t first_token, int32_t step, F32Tile<Shape>& tile) {
  constexpr int kQuads = kGemmF32Step / 4;
  static_assert(Shape::kTileTokens * kQuads % kGemmThreads == 0);
#pragma unroll
  for (int first = 0; first < Shape::kTileTokens * kQuads; first += kGemmThreads) {
    const int unit = first + static_cast<int>(threadIdx.x);
    const int t = unit / kQuads;
    const int k = unit % kQuads * 4;
    const int64_t run = int64_t{step} * (kGemmF32Step / Slice::kRunValues) + k / Slice::kRunValues;
    const int64_t column =
        Slice::run_start(run / Slice::kRuns, static_cast<int>(run % Slice::kRuns)) +
        k % Slice::kRunValues;
    const bool present = first_token + t < data.tokens;
    const float* x = data.x + (present ? data.x_rows.offset(first_token + t) : 0);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      tile.x[k + i][t] = present && column + i < data.columns ? x[column + i] : 0.0f;
    }
  }
}

template <typename Shape>
__device__ __forceinline__ void multiply_f32(
    const F32Tile<Shape>& tile,
    const GemmPlace<Shape>& place,
    float (&sums)[Shape::kRows][Shape::kTokens]) {
#pragma unroll 8
  for (int k = 0; k < kGemmF32Step; ++k) {
    float w[Shape::kRows];
#pragma unroll
    for (int i = 0; i < Shape::kRows; i += 4) {
      const float4 rows = load4(&tile.w[k][16 * i + 4 * place.thread_row]);
      w[i] = rows.x;
      w[i + 1] = rows.y;
      w[i + 2] = rows.z;
      w[i + 3] = rows.w;
    }
    float x[Shape::kTokens];
#pragma unroll
    for (int t = 0; t < Shape::kTokens; t += 2) {
      const float* from = &tile.x[k][Shape::kTokens * place.thread_token + t];
      const float2 tokens = *reinterpret_cast<const float2*>(from);
      x[t] = tokens.x;
      x[t + 1] = tokens.y;
    }
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
#pragma unroll
      for (int t = 0; t < Shape::kTokens; ++t) {
        sums[i][t] = fmaf(w[i], x[t], sums[i][t]);
      }
    }
  }
}

template <typename K, int32_t kType, typename Shape>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    matmul_gemm_f32_kernel(MatmulData data) {
  using Slice = WeightSlice<kType>;
  static_assert(sizeof(F32Tile<Shape>) <= kDefaultSharedBytes);
  __shared__ __align__(16) F32Tile<Shape> tile;
  const GemmPlace<Shape> place(data);
  float sums[Shape::kRows][Shape::kTokens] = {};
  const int64_t values = slice_count<Slice>(data.columns) * Slice::kRuns * Slice::kRunValues;
  const auto steps = static_cast<int32_t>((values + kGemmF32Step - 1) / kGemmF32Step);
  for (int32_t step = 0; step < steps; ++step) {
    load_f32_w<typename K::Chip, Slice>(data, place.row, step, tile);
    load_f32_x<Slice>(data, place.token, step, tile);
    __syncthreads();
    multiply_f32(tile, place, sums);
    __syncthreads();  // before the next step overwrites the tiles
  }
#pragma unroll
  for (int t = 0; t < Shape::kTokens; ++t) {
    const int32_t token = place.token + Shape::kTokens * place.thread_token + t;
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      const int32_t row = place.row + i / 4 * 4 * kGemmSide + 4 * place.thread_row + i % 4;
      if (token < data.tokens && row < data.rows) {
        matmul_store(data, token, row, sums[i][t]);
      }
    }
  }
}

template <typename Arch>
struct MatmulGemmF32 {
  using Chip = Arch;
  static constexpr const char* kName = "matmul_gemm_f32";
  static constexpr int32_t kOp = pavo_op_matmul;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = kGemmThreads;
  static constexpr int kMinBlocksPerSm = 2;  // 128 registers a thread

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    return matmul_supports_tiles(query, verdict);
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) { return matmul_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const MatmulData data = matmul_data(args);
    cudaError_t error = cudaSuccess;
    for_type(WeightTypes{}, args.input(1).tensor->type, [&](auto type) {
      constexpr int32_t kType = decltype(type)::value;
      error = gemm_launch(data, args.query.caps.sm_count, [&](uint32_t blocks, auto shape) {
        return args.launcher.launch(
            kName,
            matmul_gemm_f32_kernel<MatmulGemmF32, kType, decltype(shape)>,
            dim3(blocks),
            dim3(kThreads),
            0,
            data);
      });
    });
    return error;
  }
};

template <typename Arch>
KernelList matmul_gemm_f32_kernels() {
  static constexpr Kernel kKernels[] = {entry<MatmulGemmF32<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
