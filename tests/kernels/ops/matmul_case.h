// One matmul against sums in double of the CPU plugin's decoded weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/kernel.h"
#include "tests/kernels/ops/node_fixture.h"

namespace pavo::cuda::testing {

// Values of x: any, or such that every block of 32 is a multiple of a power of two that int8
// activations hold exactly.
enum class Values { kAny, kExactInInt8 };

struct MatmulCase {
  int32_t type;
  int64_t tokens, rows, columns;
  bool bias = false;
  Placing x_placing = {};
  Placing out_placing = {};
  Values values = Values::kAny;
  int32_t precision = PAVO_PRECISION_DEFAULT;
  int32_t sm_count = 4;
  float x_factor = 1;
};

struct MatmulOutcome {
  std::string refusal;
  std::vector<std::string> launched;
  // Largest |got - want| / sum_k |x * w| of all outputs.
  double worst = 0;
  // Largest |got - want| / (standard deviation that int8 rounding of x gives).
  double worst_deviation = 0;
};

MatmulOutcome run_matmul(const MatmulCase& c, const Kernel& kernel);

// Of `worst`: f32 sums of a few thousand products.
constexpr double kF32Limit = 1e-6;
// Of `worst_deviation`: beyond it lies one output in 10^8.
constexpr double kInt8Limit = 6;
// Of `worst_deviation`: f16 activations and sums of 16 products in f16 deviate by a sixth of that.
constexpr double kHalfLimit = 1;

}  // namespace pavo::cuda::testing
