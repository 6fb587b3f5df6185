// Random stored weights and K/V rows, and their values in double: each value by itself, from the
// formula of quant.h, not from the code under test.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "pavo/quant.h"

#include "tests/random.h"

namespace pavo::test {

template <typename T>
T read_as(const std::byte* memory) {
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

// The value of an f16 or bf16 bit pattern with that many mantissa bits.
inline double half_value(uint16_t bits, int mantissa_bits) {
  const int exponent_bits = 15 - mantissa_bits;
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = (bits >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = (bits & 0x8000) != 0 ? -1 : 1;
  if (exponent == 0) {
    return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  }
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

inline double f16_value(uint16_t bits) {
  return half_value(bits, 10);
}

// Value `i` of the block that starts at `block`.
inline double block_value(int32_t type, const std::byte* block, int i) {
  const auto byte = [&](int at) { return static_cast<int>(block[at]); };
  const auto scale = [&](int at) { return f16_value(read_as<uint16_t>(block + at)); };
  const int nibble32 = i < 16 ? 0 : 4;  // shift of the nibble in blocks of 32
  switch (type) {
    case PAVO_TYPE_F32:
      return static_cast<double>(read_as<float>(block));
    case PAVO_TYPE_F16:
      return scale(0);
    case PAVO_TYPE_BF16:
      return half_value(read_as<uint16_t>(block), 7);
    case PAVO_TYPE_Q4_0:
      return scale(0) * (((byte(2 + i % 16) >> nibble32) & 15) - 8);
    case PAVO_TYPE_Q4_1:
      return scale(0) * ((byte(4 + i % 16) >> nibble32) & 15) + scale(2);
    case PAVO_TYPE_Q8_0:
      return scale(0) * static_cast<int8_t>(byte(2 + i));
    case PAVO_TYPE_Q4_K: {
      const int s = i / 32;
      const int low = byte(4 + s % 4);    // scales of 0..3, high bits of those of 4..7
      const int mid = byte(8 + s % 4);    // minima likewise
      const int both = byte(12 + s % 4);  // low bits of 4..7
      const int sc = s < 4 ? low & 63 : (both & 15) + 16 * (low >> 6);
      const int mn = s < 4 ? mid & 63 : (both >> 4) + 16 * (mid >> 6);
      const int q = (byte(16 + 32 * (s / 2) + i % 32) >> (s % 2 * 4)) & 15;
      return scale(0) * sc * q - scale(2) * mn;
    }
    case PAVO_TYPE_Q6_K: {
      const int half = i / 128;
      const int quarter = i / 32 % 4;
      const int low = byte(64 * half + (quarter % 2) * 32 + i % 32) >> (quarter / 2 * 4);
      const int high = byte(128 + 32 * half + i % 32) >> (2 * quarter);
      const int q = (low & 15) + 16 * (high & 3) - 32;
      return scale(208) * static_cast<int8_t>(byte(192 + i / 16)) * q;
    }
    default:
      return NAN;
  }
}

// Value `index` of a row as in the file.
inline double row_value(int32_t type, const std::byte* row, int64_t index) {
  const int64_t values = std::max<int64_t>(1, pavo_type_block_values(type));
  return block_value(
      type, row + index / values * pavo_type_block_bytes(type), static_cast<int>(index % values));
}

// Offsets of the f16 fields of a block; -1: none.
struct ScaleFields {
  int scale;
  int minimum;
};

inline ScaleFields scale_fields(int32_t type) {
  switch (type) {
    case PAVO_TYPE_Q4_1:
    case PAVO_TYPE_Q4_K:
      return {0, 2};
    case PAVO_TYPE_Q6_K:
      return {208, -1};
    default:
      return {0, -1};
  }
}

// `count` values (whole blocks) of any bit pattern, with scales that give values of order one.
inline std::vector<std::byte> random_weights(Random& random, int32_t type, int64_t count) {
  const int64_t block_bytes = pavo_type_block_bytes(type);
  std::vector<std::byte> bytes(static_cast<size_t>(pavo_type_row_bytes(type, count)));
  for (int64_t at = 0; at < static_cast<int64_t>(bytes.size()); at += block_bytes) {
    std::byte* block = bytes.data() + at;
    const float value = random.normal();
    const uint16_t f16 = pavo_f32_to_f16(value);
    const uint16_t bf16 = pavo_f32_to_bf16(value);
    if (type == PAVO_TYPE_F32) {
      std::memcpy(block, &value, sizeof value);
    } else if (type == PAVO_TYPE_F16 || type == PAVO_TYPE_BF16) {
      std::memcpy(block, type == PAVO_TYPE_F16 ? &f16 : &bf16, sizeof f16);
    } else {
      for (int64_t i = 0; i < block_bytes; ++i) {
        block[i] = static_cast<std::byte>(random.integer(0, 255));
      }
      // Largest values: 8 d, 15 d + m, 128 d, 63 * 15 d, 128 * 32 d.
      const float largest = type == PAVO_TYPE_Q4_0   ? 8.0F
                            : type == PAVO_TYPE_Q4_1 ? 15.0F
                            : type == PAVO_TYPE_Q8_0 ? 128.0F
                            : type == PAVO_TYPE_Q4_K ? 945.0F
                                                     : 4096.0F;
      const uint16_t d = pavo_f32_to_f16(random.normal() / largest * 2.0F);
      const uint16_t m = pavo_f32_to_f16(random.normal() / (type == PAVO_TYPE_Q4_K ? 63.0F : 1.0F));
      const ScaleFields fields = scale_fields(type);
      std::memcpy(block + fields.scale, &d, sizeof d);
      if (fields.minimum >= 0) {
        std::memcpy(block + fields.minimum, &m, sizeof m);
      }
    }
  }
  return bytes;
}

// Value `index` of row `row` of the head of a K/V page that starts at `head`.
inline double page_value(
    int32_t type, int64_t head_dim, const std::byte* head, int64_t row, int64_t index) {
  pavo_kv_layout layout{};
  pavo_kv_layout_init(type, head_dim, &layout);
  const std::byte* low = head + layout.low_offset + row * layout.low_row_bytes;
  if (type != PAVO_TYPE_Q8_0) {
    return block_value(type, low + index * pavo_type_block_bytes(type), 0);
  }
  const std::byte* scales = head + layout.scale_offset + row * layout.scale_row_bytes;
  return f16_value(read_as<uint16_t>(scales + index / 32 * 2)) * read_as<int8_t>(low + index);
}

// Pages with values of order one; bytes that hold no value are random.
inline std::vector<std::byte> random_pages(
    Random& random, int32_t type, int64_t pages, int64_t heads, int64_t head_dim) {
  pavo_kv_layout layout{};
  pavo_kv_layout_init(type, head_dim, &layout);
  std::vector<std::byte> bytes = random.bytes(pages * heads * layout.head_bytes);
  for (int64_t i = 0; i < pages * heads * PAVO_KV_PAGE_ROWS; ++i) {
    const int64_t row = i % PAVO_KV_PAGE_ROWS;
    std::byte* head = bytes.data() + i / PAVO_KV_PAGE_ROWS * layout.head_bytes;
    if (type != PAVO_TYPE_Q8_0) {
      const std::vector<std::byte> values = random_weights(random, type, head_dim);
      std::memcpy(head + row * layout.low_row_bytes, values.data(), values.size());
      continue;
    }
    for (int64_t block = 0; block < layout.scale_row_bytes / 2; ++block) {
      const uint16_t d = pavo_f32_to_f16(std::fabs(random.normal()) / 64.0F + 0.001F);
      std::memcpy(
          head + layout.scale_offset + row * layout.scale_row_bytes + 2 * block, &d, sizeof d);
    }
    // Values behind the head's last one are zero.
    for (int64_t d = head_dim; d < layout.low_row_bytes; ++d) {
      head[row * layout.low_row_bytes + d] = std::byte{0};
    }
  }
  return bytes;
}

inline constexpr int32_t kWeightTypes[] = {
    PAVO_TYPE_F32,
    PAVO_TYPE_F16,
    PAVO_TYPE_BF16,
    PAVO_TYPE_Q4_0,
    PAVO_TYPE_Q4_1,
    PAVO_TYPE_Q8_0,
    PAVO_TYPE_Q4_K,
    PAVO_TYPE_Q6_K};

inline constexpr int32_t kKvTypes[] = {
    PAVO_TYPE_F32, PAVO_TYPE_F16, PAVO_TYPE_BF16, PAVO_TYPE_Q8_0};

}  // namespace pavo::test
