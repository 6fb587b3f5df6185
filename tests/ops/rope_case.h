// Rope cases and their result in double, from the formula of ops.inc.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/ops/expected.h"
#include "tests/random.h"
#include "tests/tolerance.h"

namespace pavo::test {

// Theta 10000, nothing scaled.
pavo_rope_params rope_params(int32_t mode, int32_t rotary_dims);

OpCase make_rope(
    Random& random,
    const Shape& shape,
    const pavo_rope_params& params,
    int32_t position_step = 1,
    bool factors = false,
    int64_t row_gap = 0);

Expected expect_rope(const OpCase& test_case);

}  // namespace pavo::test
