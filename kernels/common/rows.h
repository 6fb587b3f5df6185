// A tensor of up to four dimensions as rows of its last one: where does row i begin?
#pragma once

#include <cstdint>

#include "pavo/plugin.h"

#include "kernels/common/weight_layout.h"

namespace pavo::cuda {

// Row number -> offset in elements of 4 bytes. The last dimension is dense.
struct RowMap {
  int64_t rows = 1;
  int64_t columns = 1;
  int64_t inner = 1;   // rows of the dimension before the last
  int64_t middle = 1;  // of the one before that
  int64_t inner_stride = 0;
  int64_t middle_stride = 0;
  int64_t outer_stride = 0;

  PAVO_HOST_DEVICE int64_t offset(int64_t row) const {
    if (inner == rows) {  // the usual case, without divisions
      return row * inner_stride;
    }
    const int64_t rest = row / inner;
    return row % inner * inner_stride + rest % middle * middle_stride +
           rest / middle * outer_stride;
  }
  // True if all rows lie at one distance; offset(row) is then row * inner_stride.
  PAVO_HOST_DEVICE bool uniform() const { return inner == rows; }
};

// Byte stride of a dimension: an activation's own, a dense f32 weight's from its shape.
inline int64_t stride_bytes(const pavo_tensor& tensor, int32_t dimension) {
  if (tensor.role != PAVO_ROLE_WEIGHT) {
    return tensor.stride[dimension];
  }
  int64_t stride = 4;
  for (int32_t i = dimension + 1; i < tensor.rank; ++i) {
    stride *= tensor.shape[i];
  }
  return stride;
}

// For an f32 or i32 tensor with a dense last dimension. Dimensions that follow each other without a
// gap are merged, so that most tensors become uniform.
inline RowMap row_map(const pavo_tensor& tensor) {
  RowMap map;
  if (tensor.rank == 0) {
    return map;
  }
  map.columns = tensor.shape[tensor.rank - 1];
  int64_t sizes[PAVO_MAX_RANK] = {1, 1, 1, 1};
  int64_t strides[PAVO_MAX_RANK] = {0, 0, 0, 0};
  int32_t used = 0;  // innermost first
  for (int32_t i = tensor.rank - 2; i >= 0; --i) {
    const int64_t size = tensor.shape[i];
    const int64_t stride = stride_bytes(tensor, i) / 4;
    map.rows *= size;
    if (size == 1) {
      continue;
    }
    if (used > 0 && stride == sizes[used - 1] * strides[used - 1]) {
      sizes[used - 1] *= size;
      continue;
    }
    sizes[used] = size;
    strides[used] = stride;
    ++used;
  }
  map.inner = sizes[0];
  map.middle = sizes[1];
  map.inner_stride = strides[0];
  map.middle_stride = strides[1];
  map.outer_stride = strides[2];
  if (map.rows == 0) {
    map.inner = 0;
  }
  return map;
}

}  // namespace pavo::cuda
