// Embed cases of a weight as table, and their result in double.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/ops/expected.h"
#include "tests/random.h"
#include "tests/tolerance.h"

namespace pavo::test {

OpCase make_embed(
    Random& random,
    int32_t type,
    int64_t vocabulary,
    int64_t columns,
    const std::vector<int32_t>& ids,
    int64_t row_gap = 0);

Expected expect_embed(const OpCase& test_case);

}  // namespace pavo::test
