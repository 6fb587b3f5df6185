// Addresses and extents of operands. All of it assumes tensors that check_node has passed, so no
// product overflows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pavo/plugin.h"

namespace pavo::cpu {

// Values of the last dimension; a tensor of rank 0 is one row of one value.
inline int64_t row_length(const pavo_tensor& tensor) {
  return tensor.rank == 0 ? 1 : tensor.shape[tensor.rank - 1];
}

// Product of all dimensions but the last.
inline int64_t row_count(const pavo_tensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i + 1 < tensor.rank; ++i) {
    count *= tensor.shape[i];
  }
  return count;
}

inline bool has_strides(const pavo_tensor& tensor) {
  return tensor.role != PAVO_ROLE_WEIGHT && tensor.role != PAVO_ROLE_KV_POOL;
}

// Byte offset of row `row` of the flattened [rows, row_length]; any tensor but a K/V pool.
inline int64_t row_offset(const pavo_tensor& tensor, int64_t row) {
  if (!has_strides(tensor)) {
    return row * pavo_type_row_bytes(tensor.type, row_length(tensor));
  }
  int64_t offset = 0;
  for (int32_t i = tensor.rank - 2; i >= 0; --i) {
    offset += row % tensor.shape[i] * tensor.stride[i];
    row /= tensor.shape[i];
  }
  return offset;
}

// Bytes from each row to the next if that is the same for all, else -1.
inline int64_t uniform_pitch(const pavo_tensor& tensor) {
  if (!has_strides(tensor)) {
    return pavo_type_row_bytes(tensor.type, row_length(tensor));
  }
  int64_t pitch = 0;
  int64_t rows = 1;  // of the dimensions seen so far
  for (int32_t i = tensor.rank - 2; i >= 0; --i) {
    if (tensor.shape[i] == 1) {
      continue;
    }
    if (rows == 1) {
      pitch = tensor.stride[i];
    } else if (tensor.stride[i] != rows * pitch) {
      return -1;
    }
    rows *= tensor.shape[i];
  }
  return pitch;
}

// The row of b that is combined with row `row` of a: b's dimensions are a's last ones, or 1.
int64_t broadcast_row(const pavo_tensor& a, const pavo_tensor& b, int64_t row);

// Bytes from the bound address to the end of the tensor's last element; -1 if that overflows or the
// tensor is malformed. Checks everything it reads.
int64_t extent_bytes(const pavo_tensor& tensor);

// Bytes of one page of a K/V pool (all heads).
inline int64_t page_bytes(const pavo_tensor& pool, const pavo_kv_layout& layout) {
  return pool.shape[1] * layout.head_bytes;
}

}  // namespace pavo::cpu
