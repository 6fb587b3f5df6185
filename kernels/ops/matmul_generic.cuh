// matmul_generic: every shape, stride and alignment, f32 arithmetic (see matmul_common.cuh).
//
// One warp makes kTokens outputs of one row of w. Lane l adds the values of slices l, l + 32, ..
// in order; then a tree over the lanes.
#pragma once

#include "kernels/common/reduce.cuh"
#include "kernels/ops/matmul_common.cuh"

namespace pavo::cuda {

// sums[i] += the products of one quad with columns `column`.. of row i of x. kBounded: some of the
// columns may not exist.
template <int kTokens, bool kBounded>
__device__ __forceinline__ void matmul_generic_add(
    const float* const* x, int64_t column, int64_t columns, float4 values, float* sums) {
  const float parts[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (!kBounded || column + i < columns) {
#pragma unroll
      for (int t = 0; t < kTokens; ++t) {
        sums[t] = fmaf(x[t][column + i], parts[i], sums[t]);
      }
    }
  }
}

template <typename K, int32_t kType>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    matmul_generic_kernel(MatmulData data) {
  using Slice = WeightSlice<kType>;
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const int64_t slices = slice_count<Slice>(data.columns);
  const int64_t token_groups = (data.tokens + K::kTokens - 1) / K::kTokens;
  const int64_t count = data.rows * token_groups;
  const int64_t step = int64_t{gridDim.x} * K::kWarps;
  // The same for all lanes of a warp, so that they meet in the sums.
  for (int64_t i = int64_t{blockIdx.x} * K::kWarps + threadIdx.x / 32; i < count; i += step) {
    const int64_t row = i / token_groups;
    const int64_t token = i % token_groups * K::kTokens;
    const std::byte* w = data.w + row * data.layout.row_bytes;
    const float* x[K::kTokens];
    float sums[K::kTokens] = {};
#pragma unroll
    for (int t = 0; t < K::kTokens; ++t) {  // the last row again for tokens that are not there
      x[t] = data.x + data.x_rows.offset(token + t < data.tokens ? token + t : data.tokens - 1);
    }
    for (int64_t s = lane; s < slices; s += 32) {
      Slice slice;
      slice.template load<typename K::Chip>(w, data.layout, s);
#pragma unroll
      for (int run = 0; run < Slice::kRuns; ++run) {
        const int64_t start = Slice::run_start(s, run);
#pragma unroll
        for (int quad = 0; quad < Slice::kRunValues / 4; ++quad) {
          matmul_generic_add<K::kTokens, !Slice::kQuantised>(
              x, start + 4 * quad, data.columns, slice_values(slice, run, quad), sums);
        }
      }
    }
#pragma unroll
    for (int t = 0; t < K::kTokens; ++t) {
      const float sum = warp_reduce<Sum>(sums[t]);
      if (lane == 0 && token + t < data.tokens) {
        matmul_store(data, token + t, row, sum);
      }
    }
  }
}

template <typename Arch>
struct MatmulGeneric {
  using Chip = Arch;
  static constexpr const char* kName = "matmul_generic";
  static constexpr int32_t kOp = pavo_op_matmul;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 3;
  static constexpr int kWarps = kThreads / 32;
  static constexpr int kTokens = 4;
  static constexpr int64_t kMaxBlocks = 1 << 20;  // the rest is the kernel's loop

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    return matmul_supports(query, verdict);
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) { return matmul_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const MatmulData data = matmul_data(args);
    const int64_t warps = data.rows * blocks_for(data.tokens, kTokens);
    const int64_t blocks = blocks_for(warps, kWarps);
    cudaError_t error = cudaSuccess;
    for_type(WeightTypes{}, args.input(1).tensor->type, [&](auto type) {
      error = args.launcher.launch(
          kName,
          matmul_generic_kernel<MatmulGeneric, decltype(type)::value>,
          dim3(static_cast<uint32_t>(blocks < kMaxBlocks ? blocks : kMaxBlocks)),
          dim3(kThreads),
          0,
          data);
    });
    return error;
  }
};

template <typename Arch>
KernelList matmul_generic_kernels() {
  static constexpr Kernel kKernels[] = {entry<MatmulGeneric<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
