// What a valid attention node is, and what it costs; the reference and the fast kernels ask here.
#pragma once

#include "plugins/cpu/kernel_table.h"

namespace pavo::cpu {

bool check_attention(const NodeQuery& query, pavo_verdict* verdict);

// At the bucket's sizes, half of the rows visible where the mask is causal.
Cost attention_cost(const NodeQuery& query);

// PAVO_ERROR_NODE_FAILED: the step tensors of a token lead outside of the tables or the pool.
int32_t fail_attention_token(int64_t token, pavo_error* error);

}  // namespace pavo::cpu
