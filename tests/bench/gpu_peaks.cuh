// The loop behind gpu_peaks.h: kChains independent values a thread, each the next one's operand.
#pragma once

#include <cstdint>

#include <cuda_runtime.h>

namespace pavo::bench {

constexpr int kChains = 8;
constexpr int kPeakThreads = 256;
constexpr int kPeakSteps = 4096;

template <typename Op>
__global__ void __launch_bounds__(kPeakThreads)
    peak_kernel(typename Op::Value a, typename Op::Value b, typename Op::Value* out) {
  typename Op::Value values[kChains];
  for (int i = 0; i < kChains; ++i) {
    values[i] = a;
  }
#pragma unroll 8
  for (int step = 0; step < kPeakSteps; ++step) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) {
      values[i] = Op::apply(values[i], a, b);
    }
  }
  for (int i = 0; i < kChains; ++i) {  // all 256 x chains of a block: the results must be used
    out[(blockIdx.x * kPeakThreads + threadIdx.x) % kPeakThreads * kChains + i] = values[i];
  }
}

// The best of some runs; 0 if one fails.
template <typename Op>
double measure_peak(typename Op::Value a, typename Op::Value b) {
  constexpr int kRounds = 5;
  int device = 0;
  int processors = 0;
  typename Op::Value* out = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  if (cudaGetDevice(&device) != cudaSuccess ||
      cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device) != cudaSuccess ||
      cudaMalloc(&out, sizeof(*out) * kPeakThreads * kChains) != cudaSuccess ||
      cudaEventCreate(&begin) != cudaSuccess || cudaEventCreate(&end) != cudaSuccess) {
    return 0;
  }
  const auto blocks = static_cast<unsigned>(8 * processors);
  float best_ms = 0;
  for (int round = 0; round < kRounds; ++round) {
    float ms = 0;
    cudaEventRecord(begin);
    peak_kernel<Op><<<blocks, kPeakThreads>>>(a, b, out);
    cudaEventRecord(end);
    if (cudaEventSynchronize(end) != cudaSuccess || cudaGetLastError() != cudaSuccess ||
        cudaEventElapsedTime(&ms, begin, end) != cudaSuccess) {
      best_ms = 0;
      break;
    }
    best_ms = round == 0 || ms < best_ms ? ms : best_ms;
  }
  cudaFree(out);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGetLastError();
  const double operations = 2.0 * Op::kProducts * kChains * kPeakSteps * kPeakThreads * blocks;
  return best_ms > 0 ? operations / (static_cast<double>(best_ms) * 1e-3) : 0;
}

}  // namespace pavo::bench
