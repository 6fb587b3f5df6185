// Kv_store cases and the bytes that they leave in the pool, by the rules of quant.h.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/ops/expected.h"
#include "tests/random.h"
#include "tests/tolerance.h"

namespace pavo::test {

OpCase make_kv_store(
    Random& random,
    int32_t type,
    int64_t pages,
    int64_t heads,
    int64_t dim,
    const std::vector<int32_t>& slots,
    const std::vector<float>& values,
    int64_t row_gap = 0);

// All bytes of the pool (tensor 1) after the run.
std::vector<std::byte> expect_kv_store(const OpCase& test_case);

}  // namespace pavo::test
