// Predicates and sizes of K/V pool operands. Host only, pure.
#pragma once

#include "kernels/common/checks.h"
#include "kernels/common/kv_page.cuh"

namespace pavo::cuda {

// Heads of a pool are numbered in 32 bits, and grids have an axis of them.
constexpr int64_t kMaxKvHeads = kMaxGridYz;

// A pool [pages, heads, PAVO_KV_PAGE_ROWS, dims] of a type that kernels read. An absent one fits.
inline bool kv_pool_fits(
    const NodeQuery& query, Checker& check, pavo_verdict* verdict, uint32_t operand) {
  const pavo_tensor* tensor = query.input(operand);
  if (tensor == nullptr) {
    return true;
  }
  if (!check.role(operand, {PAVO_ROLE_KV_POOL}) || !check.rank(operand, 4) ||
      !check.dim_range(operand, 1, 1, kMaxKvHeads) ||
      !check.dim(operand, 2, PAVO_KV_PAGE_ROWS, "rows of a page") ||
      !check.dim_range(operand, 3, 1, kMaxKvDims)) {
    return false;
  }
  return kv_type_known(tensor->type) ||
         sdk::refuse(
             verdict,
             PAVO_REASON_TYPE,
             static_cast<int32_t>(operand),
             -1,
             PAVO_TYPE_F16,
             tensor->type,
             "K/V pages of type %s are not known here; use f32, f16, bf16 or q8_0",
             pavo_type_name(tensor->type));
}

// Of one head of one row, of a pool that fits.
inline int64_t kv_row_bytes(const pavo_tensor& pool) {
  pavo_kv_layout layout{};
  const bool known = pavo_kv_layout_init(pool.type, pool.shape[3], &layout) == 0;
  return known ? layout.head_bytes / PAVO_KV_PAGE_ROWS : 0;
}

}  // namespace pavo::cuda
