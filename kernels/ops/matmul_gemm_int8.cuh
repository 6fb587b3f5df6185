// matmul_gemm_int8: any number of tokens, quantised weights, int8 activations, dot4
// (matmul_int8.cuh, matmul_gemm.cuh). Two launches: the activations, then the products.
//
//   out += d_x * (scale * sum(q_w * q_x) + offset * sum(q_x)), for each kScaleValues values
//
// Thread (r, t) of 16 x 16 makes rows r, r + 16, .. and tokens t, t + 16, .. of the tile. Rows of
// the shared tiles are an odd number of 16-byte vectors long, so that lanes of different rows use
// different banks.
#pragma once

#include "kernels/ops/matmul_gemm.cuh"
#include "kernels/ops/matmul_int8.cuh"

namespace pavo::cuda {

// Values in the order of the row: the runs of a step's slices are put where they belong.
template <typename Slice, typename Shape>
struct Int8Tile {
  static constexpr int kStep = 64;
  static constexpr int kRuns = kStep / 16;
  static constexpr int kSlices = kRuns / Slice::kRuns;
  static constexpr int kScales = kStep / Slice::kScaleValues;
  static constexpr int kScaleRuns = Slice::kScaleValues / 16;
  static_assert(Slice::kRunValues == 16 && kStep % Slice::kSpan == 0);

  uint4 w[Shape::kTileRows][kRuns + 1];
  uint4 x[Shape::kTileTokens][kRuns + 1];
  float2 w_scales[kScales][Shape::kTileRows];    // scale, offset
  float2 x_scales[kScales][Shape::kTileTokens];  // d, d * sum of the 32
};

// What lies beyond the last row, slice, token or run becomes 0.
template <typename Arch, typename Slice, typename Shape>
__device__ __forceinline__ void load_int8_w(
    const MatmulData& data, int32_t first_row, int32_t step, Int8Tile<Slice, Shape>& tile) {
  using Tile = Int8Tile<Slice, Shape>;
  const auto slices = static_cast<int32_t>(slice_count<Slice>(data.columns));
#pragma unroll
  for (int first = 0; first < Shape::kTileRows * Tile::kSlices; first += kGemmThreads) {
    const int unit = first + static_cast<int>(threadIdx.x);
    if (unit >= Shape::kTileRows * Tile::kSlices) {
      break;
    }
    const int r = unit / Tile::kSlices;
    const int s = unit % Tile::kSlices;
    const int32_t slice_index = step * Tile::kSlices + s;
    Slice slice{};
    if (first_row + r < data.rows && slice_index < slices) {
      const std::byte* row = data.w + int64_t{first_row + r} * data.layout.row_bytes;
      slice.template load<Arch>(row, data.layout, slice_index);
    }
#pragma unroll
    for (int run = 0; run < Slice::kRuns; ++run) {
      const int k = Slice::run_start(s, run);
      tile.w[r][k / 16] = make_uint4(
          slice.word(run, 0), slice.word(run, 1), slice.word(run, 2), slice.word(run, 3));
      if (k % Slice::kScaleValues == 0) {  // one writer each
        tile.w_scales[k / Slice::kScaleValues][r] =
            make_float2(slice.scale(run), slice.offset(run));
      }
    }
  }
}

template <typename Slice, typename Shape>
__device__ __forceinline__ void load_int8_x(
    const MatmulData& data,
    const Int8Activations& x,
    int32_t first_token,
    int32_t step,
    Int8Tile<Slice, Shape>& tile) {
  using Tile = Int8Tile<Slice, Shape>;
#pragma unroll
  for (int first = 0; first < Shape::kTileTokens * Tile::kRuns; first += kGemmThreads) {
    const int unit = first + static_cast<int>(threadIdx.x);
    if (unit >= Shape::kTileTokens * Tile::kRuns) {
      break;
    }
    const int t = unit / Tile::kRuns;
    const int r = unit % Tile::kRuns;
    const int32_t run = step * Tile::kRuns + r;
    const bool present = first_token + t < data.tokens && run / 2 < x.token_blocks;
    const int64_t token = first_token + t;
    tile.x[t][r] = present ? x.quants[token * x.token_vectors + run] : make_uint4(0, 0, 0, 0);
    if (r % Tile::kScaleRuns == 0) {
      const int64_t block = token * x.token_blocks + run / 2;
      const float2 scale = present ? x.scales[block] : make_float2(0.0f, 0.0f);
      tile.x_scales[r / Tile::kScaleRuns][t] = scale;
    }
  }
}

template <typename Arch, typename Slice, typename Shape>
__device__ __forceinline__ void multiply_int8(
    const Int8Tile<Slice, Shape>& tile,
    const GemmPlace<Shape>& place,
    float (&sums)[Shape::kRows][Shape::kTokens]) {
  using Tile = Int8Tile<Slice, Shape>;
#pragma unroll 1
  for (int g = 0; g < Tile::kScales; ++g) {
    uint4 x[Shape::kTokens][Tile::kScaleRuns];
    float2 x_scales[Shape::kTokens];
#pragma unroll
    for (int t = 0; t < Shape::kTokens; ++t) {
      const int token = place.thread_token + kGemmSide * t;
      x_scales[t] = tile.x_scales[g][token];
#pragma unroll
      for (int run = 0; run < Tile::kScaleRuns; ++run) {
        x[t][run] = tile.x[token][g * Tile::kScaleRuns + run];
      }
    }
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      const int row = place.thread_row + kGemmSide * i;
      const float2 w_scales = tile.w_scales[g][row];
      int32_t dots[Shape::kTokens];
#pragma unroll
      for (int run = 0; run < Tile::kScaleRuns; ++run) {
        const uint4 w = tile.w[row][g * Tile::kScaleRuns + run];
#pragma unroll
        for (int t = 0; t < Shape::kTokens; ++t) {
          int32_t dot = run == 0 ? kDotStart : dots[t];
          dot = Arch::dot4(static_cast<int32_t>(w.x), static_cast<int32_t>(x[t][run].x), dot);
          dot = Arch::dot4(static_cast<int32_t>(w.y), static_cast<int32_t>(x[t][run].y), dot);
          dot = Arch::dot4(static_cast<int32_t>(w.z), static_cast<int32_t>(x[t][run].z), dot);
          dots[t] = Arch::dot4(static_cast<int32_t>(w.w), static_cast<int32_t>(x[t][run].w), dot);
        }
      }
#pragma unroll
      for (int t = 0; t < Shape::kTokens; ++t) {
        float& sum = sums[i][t];
        sum = fmaf(w_scales.x * x_scales[t].x, dot_value(dots[t]), sum);
        if constexpr (Slice::kHasOffset) {
          sum = fmaf(w_scales.y, x_scales[t].y, sum);
        }
      }
    }
  }
}

template <typename K, int32_t kType, typename Shape>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    matmul_gemm_int8_kernel(MatmulData data, Int8Activations x) {
  using Arch = typename K::Chip;
  using Slice = WeightSlice<kType>;
  using Tile = Int8Tile<Slice, Shape>;
  static_assert(sizeof(Tile) <= kDefaultSharedBytes);
  __shared__ Tile tile;
  const GemmPlace<Shape> place(data);
  float sums[Shape::kRows][Shape::kTokens] = {};
  const auto steps = static_cast<int32_t>((data.columns + Tile::kStep - 1) / Tile::kStep);
  for (int32_t step = 0; step < steps; ++step) {
    load_int8_w<Arch>(data, place.row, step, tile);
    load_int8_x(data, x, place.token, step, tile);
    __syncthreads();
    multiply_int8<Arch>(tile, place, sums);
    __syncthreads();  // before the next step overwrites the tiles
  }
#pragma unroll
  for (int t = 0; t < Shape::kTokens; ++t) {
    const int32_t token = place.token + place.thread_token + kGemmSide * t;
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      const int32_t row = place.row + place.thread_row + kGemmSide * i;
      if (token < data.tokens && row < data.rows) {
        matmul_store(data, token, row, sums[i][t]);
      }
    }
  }
}

template <typename Arch>
struct MatmulGemmInt8 {
  using Chip = Arch;
  static constexpr const char* kName = "matmul_gemm_int8";
  static constexpr int32_t kOp = pavo_op_matmul;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = kGemmThreads;
  static constexpr int kMinBlocksPerSm = 2;  // 128 registers a thread

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    return matmul_supports_rounded(query, verdict);
  }
  static int64_t workspace_bytes(const NodeQuery& query) { return int8_activation_bytes(query); }
  static Cost cost(const NodeQuery& query) { return matmul_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const MatmulData data = matmul_data(args);
    const Int8Activations x = int8_activations(args, data, 1);
    cudaError_t error = launch_quantise<MatmulGemmInt8>(args, data, x);
    if (error != cudaSuccess) {
      return error;
    }
    for_type(QuantisedTypes{}, args.input(1).tensor->type, [&](auto type) {
      constexpr int32_t kType = decltype(type)::value;
      error = gemm_launch(data, args.query.caps.sm_count, [&](uint32_t blocks, auto shape) {
        return args.launcher.launch(
            kName,
            matmul_gemm_int8_kernel<MatmulGemmInt8, kType, decltype(shape)>,
            dim3(blocks),
            dim3(kThreads),
            0,
            data,
            x);
      });
    });
    return error;
  }
};

template <typename Arch>
KernelList matmul_gemm_int8_kernels() {
  static_assert(Arch::kHasDot4);
  static constexpr Kernel kKernels[] = {entry<MatmulGemmInt8<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
