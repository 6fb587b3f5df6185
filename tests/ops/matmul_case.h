// Matmul cases and their result in double, from the formula of ops.inc.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/ops/expected.h"
#include "tests/random.h"
#include "tests/tolerance.h"

namespace pavo::test {

struct MatmulSizes {
  int64_t tokens;
  int64_t columns;
  int64_t depth;
  bool bias = false;
  int32_t precision = PAVO_PRECISION_DEFAULT;
  int64_t row_gap = 0;
};

OpCase make_matmul(Random& random, int32_t type, const MatmulSizes& sizes);

// The coarsest arithmetic that the node allows: int8 activations only where the weights are
// quantised, f32 where the node asks for it.
Arithmetic matmul_arithmetic(const OpCase& test_case);

Expected expect_matmul(const OpCase& test_case, Arithmetic arithmetic);

}  // namespace pavo::test
