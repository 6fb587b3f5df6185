// What the reference kernels share. A reference is plain loops with double sums: slow, and easy to
// see right. It takes every valid node, strided operands included.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cpu/checker.h"
#include "plugins/cpu/dequantize.h"
#include "plugins/cpu/kernel_table.h"
#include "plugins/cpu/tensor_view.h"

namespace pavo::cpu::reference {

inline float* row(const Operand& operand, int64_t index) {
  return reinterpret_cast<float*>(operand.data + row_offset(*operand.tensor, index));
}

// Element `index` of an i32 step tensor of rank 1 or of row `row_index` of one of rank 2.
inline int32_t index_at(const Operand& operand, int64_t row_index, int64_t index) {
  const pavo_tensor& tensor = *operand.tensor;
  const int64_t last = tensor.rank - 1;
  const int64_t stride = tensor.shape[last] > 1 ? tensor.stride[last] : 0;
  const int64_t pitch = tensor.rank > 1 ? tensor.stride[0] : 0;
  return *reinterpret_cast<const int32_t*>(operand.data + row_index * pitch + index * stride);
}

// Decodes a dense weight into out and returns it; NULL if the operand is absent.
inline const float* dense(const Operand& weight, float* out) {
  if (!weight) {
    return nullptr;
  }
  dequantize_row(weight.tensor->type, weight.data, weight.dim(0), out);
  return out;
}

// Bytes of all operands, for ops that touch each of them once.
inline double operand_bytes(const NodeQuery& query) {
  double bytes = 0;
  for (uint32_t i = 0; i < query.node.input_count; ++i) {
    bytes += query.input(i) == nullptr ? 0 : static_cast<double>(extent_bytes(*query.input(i)));
  }
  for (uint32_t i = 0; i < query.node.output_count; ++i) {
    bytes += query.output(i) == nullptr ? 0 : static_cast<double>(extent_bytes(*query.output(i)));
  }
  return bytes;
}

inline double values(const pavo_tensor& tensor) {
  return static_cast<double>(row_count(tensor)) * static_cast<double>(row_length(tensor));
}

}  // namespace pavo::cpu::reference
