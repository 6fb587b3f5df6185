// f16 activations of matmul. Each row of x is scaled by a power of two such that its largest value
// lies in 4..8: sums of 32 products with bytes cannot overflow, and values down to 2^-17 of the
// largest keep all bits of f16. A row with a value that is not finite gets the scale NaN.
//
// In the workspace, T rounded up by padded_tokens: the halves [T][..] in an order of the kernel's,
// then the sums of 16 of them [T][K / 16] for weights that have offsets, then what undoes the scale
// [T].
#pragma once

#include "kernels/common/reduce.cuh"
#include "kernels/ops/matmul_common.cuh"

namespace pavo::cuda {

struct HalfActivations {
  uint4* halves;  // 8 values
  float* sums;
  float* scales;
  int64_t tokens;         // padded
  int32_t token_vectors;  // from row to row of halves
  int32_t token_runs;     // K / 16, from row to row of sums
};

inline int64_t half_activation_bytes(int64_t tokens, int64_t columns, int64_t token_vectors) {
  return padded_tokens(tokens) * (16 * token_vectors + columns / 16 * 4 + 4);
}

inline HalfActivations half_activations(
    const KernelArgs& args, const MatmulData& data, int64_t token_vectors) {
  HalfActivations out{};
  out.tokens = padded_tokens(data.tokens);
  out.token_vectors = static_cast<int32_t>(token_vectors);
  out.token_runs = static_cast<int32_t>(data.columns / 16);
  out.halves = reinterpret_cast<uint4*>(args.workspace);
  out.sums = reinterpret_cast<float*>(out.halves + out.tokens * token_vectors);
  out.scales = out.sums + out.tokens * out.token_runs;
  return out;
}

// As bits, so that infinity and NaN win.
__device__ __forceinline__ uint32_t magnitude_bits(float value) {
  return __float_as_uint(value) & 0x7fffffffu;
}

// Largest magnitude of a block's values, for all of its threads.
template <int kThreads>
__device__ __forceinline__ uint32_t block_peak(uint32_t peak) {
  constexpr int kWarps = kThreads / 32;
  __shared__ uint32_t parts[kWarps];
#pragma unroll
  for (int offset = 16; offset > 0; offset /= 2) {
    const uint32_t other = __shfl_xor_sync(kFullWarp, peak, offset);
    peak = peak > other ? peak : other;
  }
  if (threadIdx.x % 32 == 0) {
    parts[threadIdx.x / 32] = peak;
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kWarps; ++i) {
    peak = peak > parts[i] ? peak : parts[i];
  }
  return peak;
}

// One block a token; x is read value by value: it may lie at any address. Order::vector(slice,
// run): where the first of a run's two vectors goes; Order::kNext: the second, from there.
template <typename K, typename Slice, typename Order>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    matmul_halve_kernel(MatmulData data, HalfActivations out) {
  const int64_t token = blockIdx.x;
  const float* x = data.x + data.x_rows.offset(token < data.tokens ? token : data.tokens - 1);
  uint32_t peak = 0;
  for (int64_t i = threadIdx.x; i < data.columns; i += K::kThreads) {
    const uint32_t bits = magnitude_bits(x[i]);
    peak = peak > bits ? peak : bits;
  }
  peak = block_peak<K::kThreads>(peak);
  // 2^(2 - exponent of the peak), within the range of f32.
  const uint32_t exponent = peak >> 23 < 3 ? 3 : peak >> 23;
  const float factor = __uint_as_float((256 - exponent) << 23);
  if (threadIdx.x == 0) {
    out.scales[token] =
        exponent == 255 ? __uint_as_float(0x7fffffffu) : __uint_as_float((exponent - 2) << 23);
  }
  const int32_t runs = out.token_runs;
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < runs; i += K::kThreads) {
    const int32_t slice = i / Slice::kRuns;
    const int run = i % Slice::kRuns;
    const int32_t start = Slice::run_start(slice, run);
    uint32_t pairs[8];
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      pairs[j] = f32_to_half2(x[start + 2 * j] * factor, x[start + 2 * j + 1] * factor);
      const float2 rounded = f16x2_to_f32(pairs[j]);
      sum += rounded.x + rounded.y;
    }
    uint4* halves = out.halves + token * out.token_vectors + Order::vector(slice, run);
    halves[0] = make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
    halves[Order::kNext] = make_uint4(pairs[4], pairs[5], pairs[6], pairs[7]);
    out.sums[token * runs + start / 16] = sum;
  }
}

template <typename K, typename Slice, typename Order>
cudaError_t launch_halve(
    const KernelArgs& args, const MatmulData& data, const HalfActivations& out) {
  return args.launcher.launch(
      "matmul_halve",
      matmul_halve_kernel<K, Slice, Order>,
      dim3(static_cast<uint32_t>(out.tokens)),
      dim3(K::kThreads),
      0,
      data,
      out);
}

}  // namespace pavo::cuda
