#pragma once

#include <cstdint>

namespace pavo::cpu {

// One row of norm, in f32.
struct NormRow {
  const float* x;
  const float* residual;  // NULL: none
  const float* weight;    // NULL: 1
  const float* bias;      // NULL: 0
  float* y;
  float* sum;  // NULL: not asked for
  int64_t length;
};

}  // namespace pavo::cpu
