// The parameters of rope: validity, frequencies, and which position row a pair uses.
#pragma once

#include <cstdint>

#include "plugins/cpu/checker.h"

namespace pavo::cpu {

// rotary_dims even and within the head, sections that add up, everything finite.
bool check_rope_params(const NodeQuery& query, Checker* check, pavo_verdict* verdict);

// out[0..rotary_dims/2): radians per position. factors may be NULL.
void rope_frequencies(const pavo_rope_params& params, const float* factors, double* out);

// Row of the positions tensor for pair `pair`: 0 unless the mode is PAVO_ROPE_SECTIONS.
int64_t rope_position_row(const pavo_rope_params& params, int64_t pair);

}  // namespace pavo::cpu
