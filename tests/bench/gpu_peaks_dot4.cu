// Apart from the others, since not every chip has the instruction.
#include "tests/bench/gpu_peaks.cuh"
#include "tests/bench/gpu_peaks.h"

namespace pavo::bench {
namespace {

struct Dot4 {
  using Value = int32_t;
  static constexpr int kProducts = 4;
  static __device__ int32_t apply(int32_t value, int32_t a, int32_t b) {
    return __dp4a(value, a, b);
  }
};

}  // namespace

double dot4_peak() {
  return measure_peak<Dot4>(0x01020304, 0x05060708);
}

}  // namespace pavo::bench
