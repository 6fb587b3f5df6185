#include "plugins/cpu/dequantize.h"

#include <cstring>

namespace pavo::cpu {
namespace {

// Blocks lie at any even address of a mapped file, so each is copied before it is read.
template <typename Block>
Block load(const std::byte* memory, int64_t index) {
  Block block;
  std::memcpy(&block, memory + index * static_cast<int64_t>(sizeof(Block)), sizeof block);
  return block;
}

void decode(const pavo_block_q4_0& block, float* out) {
  const float d = pavo_f16_to_f32(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>((block.qs[i] & 15) - 8);
    out[i + 16] = d * static_cast<float>((block.qs[i] >> 4) - 8);
  }
}

void decode(const pavo_block_q4_1& block, float* out) {
  const float d = pavo_f16_to_f32(block.d);
  const float m = pavo_f16_to_f32(block.m);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(block.qs[i] & 15) + m;
    out[i + 16] = d * static_cast<float>(block.qs[i] >> 4) + m;
  }
}

void decode(const pavo_block_q8_0& block, float* out) {
  const float d = pavo_f16_to_f32(block.d);
  for (int i = 0; i < 32; ++i) {
    out[i] = d * static_cast<float>(block.qs[i]);
  }
}

void decode(const pavo_block_q4_k& block, float* out) {
  const float d = pavo_f16_to_f32(block.d);
  const float dmin = pavo_f16_to_f32(block.dmin);
  for (int s = 0; s < 8; ++s) {
    uint8_t scale = 0;
    uint8_t minimum = 0;
    pavo_q4_k_scale_min(block.scales, s, &scale, &minimum);
    const float step = d * static_cast<float>(scale);
    const float offset = dmin * static_cast<float>(minimum);
    const uint8_t* qs = block.qs + 32 * (s / 2);
    const int shift = 4 * (s % 2);
    for (int i = 0; i < 32; ++i) {
      out[32 * s + i] = step * static_cast<float>((qs[i] >> shift) & 15) - offset;
    }
  }
}

void decode(const pavo_block_q6_k& block, float* out) {
  const float d = pavo_f16_to_f32(block.d);
  for (int i = 0; i < 256; ++i) {
    const int half = i / 128;
    const int quarter = i % 128 / 32;  // which of the four values that share qh[32 * half + lane]
    const int lane = i % 32;
    const uint8_t low = block.ql[64 * half + 32 * (quarter % 2) + lane];
    const uint8_t high = block.qh[32 * half + lane];
    const int q = ((low >> (4 * (quarter / 2))) & 15) | (((high >> (2 * quarter)) & 3) << 4);
    out[i] = d * static_cast<float>(block.scales[i / 16]) * static_cast<float>(q - 32);
  }
}

template <typename Block, int kValues>
void decode_blocks(const std::byte* row, int64_t count, float* out) {
  for (int64_t i = 0; i < count / kValues; ++i) {
    decode(load<Block>(row, i), out + i * kValues);
  }
}

template <float (*kToF32)(uint16_t)>
void decode_halves(const std::byte* row, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) {
    out[i] = kToF32(load<uint16_t>(row, i));
  }
}

}  // namespace

bool can_dequantize(int32_t type) {
  switch (type) {
    case PAVO_TYPE_F32:
    case PAVO_TYPE_F16:
    case PAVO_TYPE_BF16:
    case PAVO_TYPE_Q4_0:
    case PAVO_TYPE_Q4_1:
    case PAVO_TYPE_Q8_0:
    case PAVO_TYPE_Q4_K:
    case PAVO_TYPE_Q6_K:
      return true;
    default:
      return false;
  }
}

void dequantize_row(int32_t type, const std::byte* row, int64_t count, float* out) {
  if (count == 0) {
    return;  // addresses of empty tensors may be NULL
  }
  switch (type) {
    case PAVO_TYPE_F32:
      std::memcpy(out, row, static_cast<size_t>(count) * sizeof(float));
      return;
    case PAVO_TYPE_F16:
      return decode_halves<pavo_f16_to_f32>(row, count, out);
    case PAVO_TYPE_BF16:
      return decode_halves<pavo_bf16_to_f32>(row, count, out);
    case PAVO_TYPE_Q4_0:
      return decode_blocks<pavo_block_q4_0, PAVO_QK>(row, count, out);
    case PAVO_TYPE_Q4_1:
      return decode_blocks<pavo_block_q4_1, PAVO_QK>(row, count, out);
    case PAVO_TYPE_Q8_0:
      return decode_blocks<pavo_block_q8_0, PAVO_QK>(row, count, out);
    case PAVO_TYPE_Q4_K:
      return decode_blocks<pavo_block_q4_k, PAVO_QK_K>(row, count, out);
    case PAVO_TYPE_Q6_K:
      return decode_blocks<pavo_block_q6_k, PAVO_QK_K>(row, count, out);
    default:
      return;
  }
}

bool can_dequantize_kv(int32_t type) {
  return type == PAVO_TYPE_F32 || type == PAVO_TYPE_F16 || type == PAVO_TYPE_BF16 ||
         type == PAVO_TYPE_Q8_0;
}

void dequantize_kv_row(
    int32_t type,
    const pavo_kv_layout& layout,
    const std::byte* head,
    int64_t row,
    int64_t head_dim,
    float* out) {
  const std::byte* low = head + layout.low_offset + row * layout.low_row_bytes;
  if (type != PAVO_TYPE_Q8_0) {
    dequantize_row(type, low, head_dim, out);
    return;
  }
  const std::byte* scales = head + layout.scale_offset + row * layout.scale_row_bytes;
  for (int64_t i = 0; i < head_dim; ++i) {
    const float d = pavo_f16_to_f32(load<uint16_t>(scales, i / PAVO_QK));
    out[i] = d * static_cast<float>(load<int8_t>(low, i));
  }
}

}  // namespace pavo::cpu
