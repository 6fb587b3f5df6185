// matmul_gemm_half: any number of tokens, quantised weights, f16 activations, half2 products
// (matmul_half.cuh, matmul_gemm.cuh). Two launches: the activations, then the products.
//
//   out += scale * sum(q_w * x) + offset * sum(x), for each kScaleValues values
//
// The sums on the right are f16 over at most 16 products, from exact bytes; all others are f32.
// Thread (r, t) of 16 x 16 makes rows r, r + 16, .. and tokens t, t + 16, .. of the tile. Rows of
// the shared tiles are an odd number of 16-byte vectors long, so that lanes of different rows use
// different banks.
#pragma once

#include "kernels/ops/matmul_gemm.cuh"
#include "kernels/ops/matmul_half.cuh"

namespace pavo::cuda {

// [K / 8] vectors of eight values, in the order of the row.
template <typename Slice>
struct HalfRowOrder {
  static constexpr int kNext = 1;
  static PAVO_HOST_DEVICE int32_t vector(int32_t slice, int run) {
    return Slice::run_start(slice, run) / 8;
  }
};

template <typename Slice, typename Shape>
struct HalfTile {
  static constexpr int kStep = 64;
  static constexpr int kVectors = kStep / 8;
  static constexpr int kSlices = kStep / (16 * Slice::kRuns);
  static constexpr int kScales = kStep / Slice::kScaleValues;
  static constexpr int kScaleRuns = Slice::kScaleValues / 16;
  static_assert(Slice::kRunValues == 16 && kStep % Slice::kSpan == 0);

  uint4 w[Shape::kTileRows][kVectors + 1];
  uint4 x[Shape::kTileTokens][kVectors + 1];
  float2 w_scales[kScales][Shape::kTileRows];  // scale, offset
  float x_sums[kScales][Shape::kTileTokens];
};

// What lies beyond the last row, slice, token or run becomes 0.
template <typename Arch, typename Slice, typename Shape>
__device__ __forceinline__ void load_half_w(
    const MatmulData& data, int32_t first_row, int32_t step, HalfTile<Slice, Shape>& tile) {
  using Tile = HalfTile<Slice, Shape>;
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
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const uint2 a = slice_halves(slice, run, 2 * half);
        const uint2 b = slice_halves(slice, run, 2 * half + 1);
        tile.w[r][k / 8 + half] = make_uint4(a.x, a.y, b.x, b.y);
      }
      if (k % Slice::kScaleValues == 0) {  // one writer each
        tile.w_scales[k / Slice::kScaleValues][r] =
            make_float2(slice.scale(run), slice.offset(run));
      }
    }
  }
}

template <typename Slice, typename Shape>
__device__ __forceinline__ void load_half_x(
    const MatmulData& data,
    const HalfActivations& x,
    int32_t first_token,
    int32_t step,
    HalfTile<Slice, Shape>& tile) {
  using Tile = HalfTile<Slice, Shape>;
#pragma unroll
  for (int first = 0; first < Shape::kTileTokens * Tile::kVectors; first += kGemmThreads) {
    const int unit = first + static_cast<int>(threadIdx.x);
    const int t = unit / Tile::kVectors;
    const int v = unit % Tile::kVectors;
    const int32_t vector = step * Tile::kVectors + v;
    const bool present = first_token + t < data.tokens && vector < x.token_vectors;
    const int64_t token = first_token + t;
    tile.x[t][v] = present ? x.halves[token * x.token_vectors + vector] : make_uint4(0, 0, 0, 0);
    if (Slice::kHasOffset && v % (2 * Tile::kScaleRuns) == 0) {
      const float* sums = x.sums + token * x.token_runs + vector / 2;
      float sum = present ? sums[0] : 0.0f;
      // K is a multiple of 32, so the next run exists too.
      sum += present && Tile::kScaleRuns == 2 ? sums[1] : 0.0f;
      tile.x_sums[v / (2 * Tile::kScaleRuns)][t] = sum;
    }
  }
}

// Products of eight values.
template <typename Slice, typename Shape>
__device__ __forceinline__ void multiply_half_vector(
    const HalfTile<Slice, Shape>& tile,
    const GemmPlace<Shape>& place,
    int vector,
    uint32_t (&products)[Shape::kRows][Shape::kTokens]) {
  uint4 x[Shape::kTokens];
#pragma unroll
  for (int t = 0; t < Shape::kTokens; ++t) {
    x[t] = tile.x[place.thread_token + kGemmSide * t][vector];
  }
#pragma unroll
  for (int i = 0; i < Shape::kRows; ++i) {
    const uint4 w = tile.w[place.thread_row + kGemmSide * i][vector];
#pragma unroll
    for (int t = 0; t < Shape::kTokens; ++t) {
      uint32_t& sum = products[i][t];
      sum = half2_fma(w.x, x[t].x, sum);
      sum = half2_fma(w.y, x[t].y, sum);
      sum = half2_fma(w.z, x[t].z, sum);
      sum = half2_fma(w.w, x[t].w, sum);
    }
  }
}

template <typename Slice, typename Shape>
__device__ __forceinline__ void multiply_half(
    const HalfTile<Slice, Shape>& tile,
    const GemmPlace<Shape>& place,
    float (&sums)[Shape::kRows][Shape::kTokens]) {
  using Tile = HalfTile<Slice, Shape>;
#pragma unroll 1
  for (int g = 0; g < Tile::kScales; ++g) {
    uint32_t products[Shape::kRows][Shape::kTokens] = {};
#pragma unroll 1
    for (int v = 0; v < 2 * Tile::kScaleRuns; ++v) {
      multiply_half_vector(tile, place, 2 * Tile::kScaleRuns * g + v, products);
    }
    float x_sums[Shape::kTokens];
#pragma unroll
    for (int t = 0; t < Shape::kTokens; ++t) {
      x_sums[t] = Slice::kHasOffset ? tile.x_sums[g][place.thread_token + kGemmSide * t] : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      const float2 w_scales = tile.w_scales[g][place.thread_row + kGemmSide * i];
#pragma unroll
      for (int t = 0; t < Shape::kTokens; ++t) {
        float& sum = sums[i][t];
        sum = fmaf(w_scales.x, half2_sum(products[i][t]), sum);
        if constexpr (Slice::kHasOffset) {
          sum = fmaf(w_scales.y, x_sums[t], sum);
        }
      }
    }
  }
}

template <typename K, int32_t kType, typename Shape>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    matmul_gemm_half_kernel(MatmulData data, HalfActivations x) {
  using Slice = WeightSlice<kType>;
  using Tile = HalfTile<Slice, Shape>;
  static_assert(sizeof(Tile) <= kDefaultSharedBytes);
  __shared__ Tile tile;
  const GemmPlace<Shape> place(data);
  float sums[Shape::kRows][Shape::kTokens] = {};
  const auto steps = static_cast<int32_t>((data.columns + Tile::kStep - 1) / Tile::kStep);
  for (int32_t step = 0; step < steps; ++step) {
    load_half_w<typename K::Chip>(data, place.row, step, tile);
    load_half_x(data, x, place.token, step, tile);
    __syncthreads();
    multiply_half(tile, place, sums);
    __syncthreads();  // before the next step overwrites the tiles
  }
#pragma unroll
  for (int t = 0; t < Shape::kTokens; ++t) {
    const int32_t token = place.token + place.thread_token + kGemmSide * t;
    const float scale = token < data.tokens ? x.scales[token] : 0.0f;
#pragma unroll
    for (int i = 0; i < Shape::kRows; ++i) {
      const int32_t row = place.row + place.thread_row + kGemmSide * i;
      if (token < data.tokens && row < data.rows) {
        matmul_store(data, token, row, sums[i][t] * scale);
      }
    }
  }
}

template <typename Arch>
struct MatmulGemmHalf {
  using Chip = Arch;
  static constexpr const char* kName = "matmul_gemm_half";
  static constexpr int32_t kOp = pavo_op_matmul;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = kGemmThreads;
  static constexpr int kMinBlocksPerSm = 2;  // 128 registers a thread

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    return matmul_supports_rounded(query, verdict);
  }
  static int64_t workspace_bytes(const NodeQuery& query) {
    const pavo_tensor& x = *query.input(0);
    return half_activation_bytes(x.shape[0], x.shape[1], x.shape[1] / 8);
  }
  static Cost cost(const NodeQuery& query) { return matmul_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const MatmulData data = matmul_data(args);
    const HalfActivations x = half_activations(args, data, data.columns / 8);
    cudaError_t error = cudaSuccess;
    for_type(QuantisedTypes{}, args.input(1).tensor->type, [&](auto type) {
      constexpr int32_t kType = decltype(type)::value;
      using Slice = WeightSlice<kType>;
      error = launch_halve<MatmulGemmHalf, Slice, HalfRowOrder<Slice>>(args, data, x);
      if (error != cudaSuccess) {
        return;
      }
      error = gemm_launch(data, args.query.caps.sm_count, [&](uint32_t blocks, auto shape) {
        return args.launcher.launch(
            kName,
            matmul_gemm_half_kernel<MatmulGemmHalf, kType, decltype(shape)>,
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
KernelList matmul_gemm_half_kernels() {
  static_assert(Arch::kFastHalf);
  static constexpr Kernel kKernels[] = {entry<MatmulGemmHalf<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
