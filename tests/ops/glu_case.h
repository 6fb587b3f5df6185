// Glu cases and their result in double, from the formula of ops.inc.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/ops/expected.h"
#include "tests/random.h"
#include "tests/tolerance.h"

namespace pavo::test {

struct GluForm {
  int32_t kind = PAVO_GLU_SILU;
  bool packed = false;  // gate and up in one tensor
  int64_t row_gap = 0;
  float deviation = 2;
};

OpCase make_glu(Random& random, const Shape& shape, const GluForm& form);

Expected expect_glu(const OpCase& test_case);

}  // namespace pavo::test
