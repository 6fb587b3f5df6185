// Rows of stored weights and of K/V pages as f32: the one place where the CPU plugin decodes them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pavo/quant.h"

namespace pavo::cpu {

// True for the weight types that dequantize_row decodes: f32 f16 bf16 q4_0 q4_1 q8_0 q4_k q6_k.
bool can_dequantize(int32_t type);

// Decodes `count` values (whole blocks) of a row as in the file into out[0..count). `row` may have
// any alignment. The type must be one that can_dequantize accepts. Each value is the formula of
// quant.h in f32 operations, rounded after each.
void dequantize_row(int32_t type, const std::byte* row, int64_t count, float* out);

// True for the K/V types that dequantize_kv_row decodes: f32 f16 bf16 q8_0.
bool can_dequantize_kv(int32_t type);

// Decodes row `row` (0..PAVO_KV_PAGE_ROWS-1) of one head of one page, which starts at `head`, into
// out[0..head_dim). `layout` is pavo_kv_layout_init(type, head_dim, ...).
void dequantize_kv_row(
    int32_t type,
    const pavo_kv_layout& layout,
    const std::byte* head,
    int64_t row,
    int64_t head_dim,
    float* out);

}  // namespace pavo::cpu
