#include "plugins/cpu/tensor_view.h"

namespace pavo::cpu {
namespace {

// *value = *value * factor; false on overflow. Both are at least 0.
bool multiply(int64_t* value, int64_t factor) {
  return !__builtin_mul_overflow(*value, factor, value);
}

bool is_empty(const pavo_tensor& tensor) {
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] == 0) {
      return true;
    }
  }
  return false;
}

int64_t strided_extent(const pavo_tensor& tensor) {
  int64_t end = pavo_type_block_bytes(tensor.type);
  for (int32_t i = 0; i < tensor.rank; ++i) {
    int64_t step = tensor.shape[i] - 1;
    if (tensor.stride[i] < 0 || !multiply(&step, tensor.stride[i]) ||
        __builtin_add_overflow(end, step, &end)) {
      return -1;
    }
  }
  return end;
}

int64_t pool_extent(const pavo_tensor& tensor) {
  pavo_kv_layout layout{};
  if (tensor.rank != 4 || tensor.shape[2] != PAVO_KV_PAGE_ROWS ||
      pavo_kv_layout_init(tensor.type, tensor.shape[3], &layout) != 0) {
    return -1;
  }
  int64_t bytes = layout.head_bytes;
  return multiply(&bytes, tensor.shape[0]) && multiply(&bytes, tensor.shape[1]) ? bytes : -1;
}

int64_t weight_extent(const pavo_tensor& tensor) {
  int64_t bytes = pavo_type_row_bytes(tensor.type, row_length(tensor));
  if (bytes < 0) {
    return -1;
  }
  for (int32_t i = 0; i + 1 < tensor.rank; ++i) {
    if (!multiply(&bytes, tensor.shape[i])) {
      return -1;
    }
  }
  return bytes;
}

}  // namespace

int64_t extent_bytes(const pavo_tensor& tensor) {
  if (tensor.rank < 0 || tensor.rank > PAVO_MAX_RANK || pavo_type_block_values(tensor.type) == 0) {
    return -1;
  }
  int64_t elements = 1;  // also bounds every product of dimensions
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] < 0 || !multiply(&elements, tensor.shape[i] == 0 ? 1 : tensor.shape[i])) {
      return -1;
    }
  }
  if (is_empty(tensor)) {
    return 0;
  }
  switch (tensor.role) {
    case PAVO_ROLE_WEIGHT:
      return weight_extent(tensor);
    case PAVO_ROLE_KV_POOL:
      return pool_extent(tensor);
    default:
      return strided_extent(tensor);
  }
}

int64_t broadcast_row(const pavo_tensor& a, const pavo_tensor& b, int64_t row) {
  int64_t result = 0;
  int64_t step = 1;  // rows of b per step of its dimension
  for (int32_t i = 2; i <= b.rank; ++i) {
    const int64_t a_size = a.shape[a.rank - i];
    const int64_t b_size = b.shape[b.rank - i];
    result += b_size == 1 ? 0 : row % a_size * step;
    row /= a_size;
    step *= b_size;
  }
  return result;
}

}  // namespace pavo::cpu
