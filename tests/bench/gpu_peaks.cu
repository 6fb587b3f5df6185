#include <cuda_fp16.h>

#include "tests/bench/gpu_peaks.cuh"
#include "tests/bench/gpu_peaks.h"

namespace pavo::bench {
namespace {

struct Fma {
  using Value = float;
  static constexpr int kProducts = 1;
  static __device__ float apply(float value, float a, float b) { return fmaf(value, a, b); }
};

struct Fma2 {
  using Value = __half2;
  static constexpr int kProducts = 2;
  static __device__ __half2 apply(__half2 value, __half2 a, __half2 b) {
    return __hfma2(value, a, b);
  }
};

}  // namespace

double f32_peak() {
  return measure_peak<Fma>(0.5f, 0.25f);
}

double half2_peak() {
  return measure_peak<Fma2>(__float2half2_rn(0.5f), __float2half2_rn(0.25f));
}

}  // namespace pavo::bench
