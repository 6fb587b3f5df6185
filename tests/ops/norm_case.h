// Norm cases and their result in double, from the formula of ops.inc.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/ops/expected.h"
#include "tests/random.h"
#include "tests/tolerance.h"

namespace pavo::test {

struct NormForm {
  int32_t kind = PAVO_NORM_RMS;
  bool weight = true;
  bool bias = false;
  bool residual = false;
  bool sum = false;
  float weight_offset = 0;
  int64_t row_gap = 0;
  float eps = 1e-5F;
  int32_t weight_type = PAVO_TYPE_F32;
};

OpCase make_norm(Random& random, const Shape& shape, const NormForm& form);

// One per output.
std::vector<Expected> expect_norm(const OpCase& test_case);

}  // namespace pavo::test
