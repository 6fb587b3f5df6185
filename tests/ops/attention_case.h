// Attention cases and their result in double, straight from the formula of ops.inc.
#pragma once

#include <vector>

#include "tests/ops/expected.h"
#include "tests/random.h"
#include "tests/tolerance.h"

namespace pavo::test {

struct AttentionForm {
  // Per sequence: rows in the K/V cache, and how many of the last ones are tokens of this step.
  std::vector<int32_t> lengths = {1};
  std::vector<int32_t> tokens = {1};
  int64_t heads = 2;
  int64_t kv_heads = 1;
  int64_t head_dim = 32;
  int64_t value_dim = 32;
  int32_t k_type = PAVO_TYPE_F32;
  int32_t v_type = PAVO_TYPE_F32;
  bool v_in_k = false;  // V is the first value_dim values of K's rows
  int32_t causal = 1;
  int32_t window = 0;
  float softcap = 0;
  bool sinks = false;
  bool slopes = false;
  int64_t mask_rows = 0;    // R; 0: no mask
  int64_t list_rows = 0;    // L; 0: no row list
  int64_t padding = 0;      // tokens behind the last sequence
  int64_t spare_pages = 0;  // columns of the page table beyond what lengths need
};

OpCase make_attention(Random& random, const AttentionForm& form);

// Dot products are made in `arithmetic`.
Expected expect_attention(const OpCase& test_case, Arithmetic arithmetic);

}  // namespace pavo::test
