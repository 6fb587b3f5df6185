// What the two GEMM families share: 16 x 16 threads make a tile of outputs, kRows x kTokens each,
// from tiles of w and x that lie in shared memory for one step of K after the other. Blocks that
// need the same weights follow each other. Order of a sum: along K.
#pragma once

#include <type_traits>

#include "kernels/ops/matmul_common.cuh"

namespace pavo::cuda {

constexpr int kGemmSide = 16;
constexpr int kGemmThreads = kGemmSide * kGemmSide;

template <int kRowsPerThread, int kTokensPerThread>
struct GemmShape {
  static constexpr int kRows = kRowsPerThread;
  static constexpr int kTokens = kTokensPerThread;
  static constexpr int kTileRows = kGemmSide * kRows;
  static constexpr int kTileTokens = kGemmSide * kTokens;
};

template <typename Shape>
struct GemmPlace {
  int32_t row;    // the first of the tile
  int32_t token;  // the first of the tile
  int thread_row, thread_token;

  __device__ explicit GemmPlace(const MatmulData& data) {
    const auto groups =
        static_cast<uint32_t>((data.tokens + Shape::kTileTokens - 1) / Shape::kTileTokens);
    row = static_cast<int32_t>(blockIdx.x / groups * Shape::kTileRows);
    token = static_cast<int32_t>(blockIdx.x % groups * Shape::kTileTokens);
    thread_row = static_cast<int>(threadIdx.x % kGemmSide);
    thread_token = static_cast<int>(threadIdx.x / kGemmSide);
  }
};

// Calls f(blocks, GemmShape) with large tiles if they give every multiprocessor two blocks, else
// with small ones.
template <typename F>
cudaError_t gemm_launch(const MatmulData& data, int32_t sm_count, F f) {
  const auto blocks = [&](auto shape) {
    using Shape = decltype(shape);
    return blocks_for(data.rows, Shape::kTileRows) * blocks_for(data.tokens, Shape::kTileTokens);
  };
  using Large = GemmShape<8, 4>;
  using Small = GemmShape<4, 2>;
  if (data.tokens > Small::kTileTokens && blocks(Large{}) >= int64_t{2} * sm_count) {
    return f(static_cast<uint32_t>(blocks(Large{})), Large{});
  }
  return f(static_cast<uint32_t>(blocks(Small{})), Small{});
}

}  // namespace pavo::cuda
