// One row into a K/V page, with the bytes that quant.h prescribes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cpu/kernel.h"

namespace pavo::cpu {

// Writes row `row` (0..PAVO_KV_PAGE_ROWS-1) of the head of a page that starts at `head`. The types
// are those of can_dequantize_kv; layout is pavo_kv_layout_init(type, head_dim, ...).
void quantize_kv_row(
    int32_t type,
    const pavo_kv_layout& layout,
    const float* values,
    int64_t head_dim,
    std::byte* head,
    int64_t row);

// PAVO_ERROR_NODE_FAILED if one of the `count` slots lies outside of `pages` pages.
int32_t check_slots(const Operand& slots, int64_t count, int64_t pages, pavo_error* error);

}  // namespace pavo::cpu
