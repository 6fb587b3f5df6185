// What the two GEMV families share: how rows and tokens are spread over warps, and the last sums.
//
// A warp makes kRows x kTokens outputs, its lanes taking slices of K in turn. Either each warp of a
// block has rows of its own, or, where that would leave multiprocessors without work, the warps of
// a block split K (`split`) and add up through shared memory. Blocks that need the same weights
// follow each other. Order of a sum: a lane's slices, the tree over lanes, the warps.
#pragma once

#include <type_traits>

#include "kernels/common/reduce.cuh"
#include "kernels/ops/matmul_common.cuh"

namespace pavo::cuda {

constexpr int64_t kGemvMaxTokens = 16;  // more than kTokens: in groups
constexpr int kGemvThreads = 128;
constexpr int kGemvWarps = kGemvThreads / 32;

// Rows a warp has at once: loads of x serve all of them, and with fewer rows those loads, not the
// weights, would take the time of several tokens.
constexpr int kGemvRows = 4;

// Blocks that a multiprocessor can hold at least: bounds the registers of a thread to 128 or 168.
template <int kTokens>
constexpr int kGemvMinBlocks = kTokens == 1 ? 4 : 3;

struct GemvGrid {
  int32_t token_groups;
  int32_t split;  // 0 or 1
};

struct GemvPlace {
  int64_t row;    // the first of kRows
  int64_t token;  // the first of kTokens
  int32_t slice;  // of this lane
  int32_t slice_step;
};

template <int kTokens>
__device__ __forceinline__ GemvPlace gemv_place(const GemvGrid& grid) {
  const auto warp = static_cast<int32_t>(threadIdx.x / 32);
  const auto lane = static_cast<int32_t>(threadIdx.x % 32);
  const auto groups = static_cast<uint32_t>(grid.token_groups);
  const int64_t unit = blockIdx.x / groups;
  GemvPlace place{};
  place.row = (grid.split != 0 ? unit : unit * kGemvWarps + warp) * kGemvRows;
  place.token = int64_t{blockIdx.x % groups} * kTokens;
  place.slice = grid.split != 0 ? warp * 32 + lane : lane;
  place.slice_step = grid.split != 0 ? kGemvThreads : 32;
  return place;
}

// Sums each of kCount values over the lanes of a warp; lane l gets sum l / (32 / kCount). Halves of
// the values change places with halves of the lanes, so it takes few more shuffles than kCount.
template <int kCount, int kOffset = 16>
__device__ __forceinline__ float transpose_sum(float* values, int lane) {
  static_assert(kCount >= 1 && kCount <= 2 * kOffset && (kCount & (kCount - 1)) == 0);
  constexpr int kHalf = kCount > 1 ? kCount / 2 : 1;
  if constexpr (kCount > 1) {
    const bool upper = (lane & kOffset) != 0;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float give = upper ? values[i] : values[i + kHalf];
      const float keep = upper ? values[i + kHalf] : values[i];
      values[i] = keep + __shfl_xor_sync(kFullWarp, give, kOffset);
    }
  } else {
    values[0] += __shfl_xor_sync(kFullWarp, values[0], kOffset);
  }
  if constexpr (kOffset > 1) {
    return transpose_sum<kHalf, kOffset / 2>(values, lane);
  } else {
    return values[0];
  }
}

// sums: [row][token]. All threads of the block must call it.
template <int kTokens>
__device__ __forceinline__ void gemv_store(
    const MatmulData& data,
    const GemvGrid& grid,
    const GemvPlace& place,
    float (&sums)[kGemvRows * kTokens]) {
  constexpr int kOutputs = kGemvRows * kTokens;
  constexpr int kLanes = 32 / kOutputs;  // that hold one output
  const auto warp = static_cast<int>(threadIdx.x / 32);
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const int output = lane / kLanes;
  float sum = transpose_sum<kOutputs>(sums, lane);
  if (grid.split != 0) {
    __shared__ float parts[kGemvWarps][kOutputs];
    if (lane % kLanes == 0) {
      parts[warp][output] = sum;
    }
    __syncthreads();
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < kGemvWarps; ++i) {
      sum += parts[i][output];
    }
  }
  const int64_t row = place.row + output / kTokens;
  const int64_t token = place.token + output % kTokens;
  if ((grid.split == 0 || warp == 0) && lane % kLanes == 0 && row < data.rows &&
      token < data.tokens) {
    matmul_store(data, token, row, sum);
  }
}

// Calls f(grid, blocks, std::integral_constant<int, kTokens>) for the kernel that fits the count of
// tokens. `slices`: of a row.
template <typename F>
cudaError_t gemv_launch(const MatmulData& data, int64_t slices, int32_t sm_count, F f) {
  constexpr int kBlocksPerSm = 8;  // enough to hide the latency of memory
  const auto with = [&](auto tokens) {
    constexpr int kTokens = decltype(tokens)::value;
    const int64_t groups = blocks_for(data.tokens, kTokens);
    const int64_t units = blocks_for(data.rows, kGemvRows);
    const int64_t blocks = blocks_for(units, kGemvWarps) * groups;
    const bool split = slices > 32 && blocks < int64_t{kBlocksPerSm} * sm_count;
    const GemvGrid grid = {static_cast<int32_t>(groups), split ? 1 : 0};
    return f(grid, static_cast<uint32_t>(split ? units * groups : blocks), tokens);
  };
  if (data.tokens <= 1) {
    return with(std::integral_constant<int, 1>{});
  }
  if (data.tokens <= 2) {
    return with(std::integral_constant<int, 2>{});
  }
  if (data.tokens <= 4) {
    return with(std::integral_constant<int, 4>{});
  }
  return with(std::integral_constant<int, 8>{});
}

}  // namespace pavo::cuda
