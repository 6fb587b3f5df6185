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

// Rows a warp has at once: x is loaded once for all of them, and sums must fit into registers.
template <int kTokens>
constexpr int kGemvRows = kTokens <= 2 ? 4 : 2;

// Blocks that a multiprocessor can hold at least: the sums of several tokens need the registers of
// one.
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
  place.row = (grid.split != 0 ? unit : unit * kGemvWarps + warp) * kGemvRows<kTokens>;
  place.token = int64_t{blockIdx.x % groups} * kTokens;
  place.slice = grid.split != 0 ? warp * 32 + lane : lane;
  place.slice_step = grid.split != 0 ? kGemvThreads : 32;
  return place;
}

// sums: [row][token]. All threads of the block must call it.
template <int kTokens>
__device__ __forceinline__ void gemv_store(
    const MatmulData& data,
    const GemvGrid& grid,
    const GemvPlace& place,
    const float (&sums)[kGemvRows<kTokens>][kTokens]) {
  constexpr int kOutputs = kGemvRows<kTokens> * kTokens;
  static_assert(kOutputs <= 32);
  const auto warp = static_cast<int>(threadIdx.x / 32);
  const auto lane = static_cast<int>(threadIdx.x % 32);
  float mine = 0.0f;  // output `lane`
#pragma unroll
  for (int i = 0; i < kOutputs; ++i) {
    const float sum = warp_reduce<Sum>(sums[i / kTokens][i % kTokens]);
    mine = lane == i ? sum : mine;
  }
  if (grid.split != 0) {
    __shared__ float parts[kGemvWarps][kOutputs];
    if (lane < kOutputs) {
      parts[warp][lane] = mine;
    }
    __syncthreads();
    mine = 0.0f;
    if (warp == 0 && lane < kOutputs) {
#pragma unroll
      for (int i = 0; i < kGemvWarps; ++i) {
        mine += parts[i][lane];
      }
    }
  }
  const int64_t row = place.row + lane / kTokens;
  const int64_t token = place.token + lane % kTokens;
  if ((grid.split == 0 || warp == 0) && lane < kOutputs && row < data.rows && token < data.tokens) {
    matmul_store(data, token, row, mine);
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
    const int64_t units = blocks_for(data.rows, kGemvRows<kTokens>);
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
