// Sums and maxima over a warp and over a block. The order is fixed by the thread numbers alone, so
// results are the same on every run.
#pragma once

#include <cstdint>

namespace pavo::cuda {

constexpr uint32_t kFullWarp = 0xffffffffu;

struct Sum {
  static __device__ __forceinline__ float identity() { return 0.0f; }
  static __device__ __forceinline__ float join(float a, float b) { return a + b; }
};

struct Max {
  static __device__ __forceinline__ float identity() { return -INFINITY; }
  static __device__ __forceinline__ float join(float a, float b) { return fmaxf(a, b); }
};

// Over groups of kWidth neighbouring lanes (a power of two up to 32); every lane gets the result.
// All lanes of the warp must take part.
template <typename Op, int kWidth = 32>
__device__ __forceinline__ float warp_reduce(float value) {
#pragma unroll
  for (int offset = kWidth / 2; offset > 0; offset /= 2) {
    value = Op::join(value, __shfl_xor_sync(kFullWarp, value, offset));
  }
  return value;
}

// Over a block of kThreads threads in one dimension, a multiple of 32; every thread gets the
// result. All threads must take part. May be called repeatedly; it ends with a barrier.
template <typename Op, int kThreads>
__device__ __forceinline__ float block_reduce(float value) {
  constexpr int kWarps = kThreads / 32;
  static_assert(kThreads % 32 == 0 && kWarps >= 1 && kWarps <= 32);
  value = warp_reduce<Op>(value);
  if constexpr (kWarps > 1) {
    __shared__ float parts[kWarps];
    if (threadIdx.x % 32 == 0) {
      parts[threadIdx.x / 32] = value;
    }
    __syncthreads();
    const int lane = static_cast<int>(threadIdx.x % 32);
    value = warp_reduce<Op>(lane < kWarps ? parts[lane] : Op::identity());
    __syncthreads();  // parts is free for the next call
  }
  return value;
}

}  // namespace pavo::cuda
