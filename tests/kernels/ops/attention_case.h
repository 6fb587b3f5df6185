// One attention node with K/V in shuffled pages of a pool, and its truth in f64.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/common/kernel.h"
#include "tests/kernels/ops/node_fixture.h"

namespace pavo::cuda::testing {

struct AttentionSequence {
  int32_t tokens;  // of this step; their rows are the last of the sequence
  int32_t length;
};

struct AttentionCase {
  int64_t heads = 4, kv_heads = 2;
  int64_t key_dims = 64, value_dims = 64;
  int32_t key_type = PAVO_TYPE_F16, value_type = PAVO_TYPE_F16;
  std::vector<AttentionSequence> sequences;
  int32_t padding = 0;  // tokens behind all sequences
  int32_t causal = 1, window = 0;
  float softcap = 0.0f;
  bool values_in_keys = false, sinks = false, slopes = false;
  int64_t mask_columns = 0, list_columns = 0;
  Placing placing;
  int32_t sm_count = 2;
  // What the step tensors may also hold: a token whose sequence is none, a page that is not there.
  int32_t lost_token = -1, lost_page = -1;
};

// Runs the case on a kernel and compares with the truth; "" if all is well. `launched`: the
// variants that ran.
std::string attention_difference(
    const AttentionCase& c, const Kernel& kernel, std::vector<std::string>* launched = nullptr);

}  // namespace pavo::cuda::testing
