// Binary cases and their result in double, from the formula of ops.inc.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/ops/expected.h"
#include "tests/random.h"
#include "tests/tolerance.h"

namespace pavo::test {

HostTensor random_activation(Random& random, const Shape& shape, int64_t row_gap = 0);

OpCase make_binary(Random& random, int32_t kind, const Shape& a, HostTensor b, int64_t row_gap = 0);

Expected expect_binary(const OpCase& test_case);

}  // namespace pavo::test
