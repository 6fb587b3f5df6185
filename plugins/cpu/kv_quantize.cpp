#include "plugins/cpu/kv_quantize.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstring>

namespace pavo::cpu {
namespace {

void quantize_q8_0(
    const pavo_kv_layout& layout,
    const float* values,
    int64_t head_dim,
    std::byte* head,
    int64_t row) {
  std::byte* low = head + layout.low_offset + row * layout.low_row_bytes;
  std::byte* scales = head + layout.scale_offset + row * layout.scale_row_bytes;
  for (int64_t begin = 0; begin < head_dim; begin += PAVO_QK) {
    const int64_t end = std::min<int64_t>(begin + PAVO_QK, head_dim);
    float amax = 0.0F;
    for (int64_t i = begin; i < end; ++i) {
      const float magnitude = std::fabs(values[i]);
      amax = magnitude > amax ? magnitude : amax;  // passes over NaN
    }
    float inverse = 0.0F;
    const uint16_t scale = pavo_q8_0_scale(amax, &inverse);
    std::memcpy(scales + begin / PAVO_QK * 2, &scale, sizeof scale);
    for (int64_t i = begin; i < begin + PAVO_QK; ++i) {
      const int8_t quant = i < end ? pavo_q8_0_quant(values[i], inverse) : int8_t{0};
      std::memcpy(low + i, &quant, sizeof quant);
    }
  }
}

template <uint16_t (*kFromF32)(float)>
void quantize_halves(const float* values, int64_t count, std::byte* out) {
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t half = kFromF32(values[i]);
    std::memcpy(out + 2 * i, &half, sizeof half);
  }
}

}  // namespace

void quantize_kv_row(
    int32_t type,
    const pavo_kv_layout& layout,
    const float* values,
    int64_t head_dim,
    std::byte* head,
    int64_t row) {
  std::byte* low = head + layout.low_offset + row * layout.low_row_bytes;
  switch (type) {
    case PAVO_TYPE_F32:
      std::memcpy(low, values, static_cast<size_t>(head_dim) * sizeof(float));
      return;
    case PAVO_TYPE_F16:
      return quantize_halves<pavo_f32_to_f16>(values, head_dim, low);
    case PAVO_TYPE_BF16:
      return quantize_halves<pavo_f32_to_bf16>(values, head_dim, low);
    case PAVO_TYPE_Q8_0:
      return quantize_q8_0(layout, values, head_dim, head, row);
    default:
      return;
  }
}

int32_t check_slots(const Operand& slots, int64_t count, int64_t pages, pavo_error* error) {
  const int64_t stride = count > 1 ? slots.tensor->stride[0] : 0;
  for (int64_t t = 0; t < count; ++t) {
    const int64_t slot = *reinterpret_cast<const int32_t*>(slots.data + t * stride);
    if (slot >= pages * PAVO_KV_PAGE_ROWS) {
      return sdk::fail(
          error,
          PAVO_ERROR_NODE_FAILED,
          "kv_store: slot %" PRId64 " of token %" PRId64 ", but the pool has %" PRId64 " pages",
          slot,
          t,
          pages);
    }
  }
  return PAVO_OK;
}

}  // namespace pavo::cpu
