// Conversions, and the decoding of packed weights and of quantised K/V rows to f32.
//
// PackedRow<type> reads eight consecutive values of a row that weight_layout.h describes; this is
// all that a generic kernel needs to know of a type. Tuned kernels decode in their own tile
// loaders.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_fp16.h>

#include "pavo/quant.h"

#include "kernels/common/weight_layout.h"

namespace pavo::cuda {

__device__ __forceinline__ float f16_to_f32(uint16_t bits) {
  return __half2float(__ushort_as_half(bits));
}

// Rounds to nearest, ties to even, as pavo_f32_to_f16.
__device__ __forceinline__ uint16_t f32_to_f16(float value) {
  return __half_as_ushort(__float2half_rn(value));
}

__device__ __forceinline__ float bf16_to_f32(uint16_t bits) {
  return __uint_as_float(static_cast<uint32_t>(bits) << 16);
}

// Two halves of one 32-bit word, low one first.
__device__ __forceinline__ float2 f16x2_to_f32(uint32_t bits) {
  return make_float2(
      f16_to_f32(static_cast<uint16_t>(bits & 0xffffu)),
      f16_to_f32(static_cast<uint16_t>(bits >> 16)));
}

// Byte i of a word, as a signed or unsigned number.
__device__ __forceinline__ int32_t signed_byte(uint32_t word, int i) {
  return static_cast<int8_t>(word >> (8 * i));
}
__device__ __forceinline__ int32_t unsigned_byte(uint32_t word, int i) {
  return static_cast<int32_t>((word >> (8 * i)) & 0xffu);
}

// Four nibbles of each byte position: the low or the high half of every byte, one a byte.
__device__ __forceinline__ uint32_t nibbles(uint32_t word, bool high) {
  return (high ? word >> 4 : word) & 0x0f0f0f0fu;
}

// A packed row of `columns` values. decode8(k, out) gives values k..k+7, k a multiple of 8.
template <int32_t kType>
struct PackedRow;

template <>
struct PackedRow<PAVO_TYPE_F32> {
  const std::byte* row;
  __device__ PackedRow(const std::byte* start, const WeightLayout&) : row(start) {}
  __device__ __forceinline__ void decode8(int64_t k, float* out) const {
    const auto* values = reinterpret_cast<const float4*>(row) + k / 4;
    const float4 a = values[0];
    const float4 b = values[1];
    out[0] = a.x, out[1] = a.y, out[2] = a.z, out[3] = a.w;
    out[4] = b.x, out[5] = b.y, out[6] = b.z, out[7] = b.w;
  }
};

template <>
struct PackedRow<PAVO_TYPE_F16> {
  const std::byte* row;
  __device__ PackedRow(const std::byte* start, const WeightLayout&) : row(start) {}
  __device__ __forceinline__ void decode8(int64_t k, float* out) const {
    const uint4 words = *(reinterpret_cast<const uint4*>(row) + k / 8);
    const uint32_t parts[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 pair = f16x2_to_f32(parts[i]);
      out[2 * i] = pair.x;
      out[2 * i + 1] = pair.y;
    }
  }
};

template <>
struct PackedRow<PAVO_TYPE_BF16> {
  const std::byte* row;
  __device__ PackedRow(const std::byte* start, const WeightLayout&) : row(start) {}
  __device__ __forceinline__ void decode8(int64_t k, float* out) const {
    const uint4 words = *(reinterpret_cast<const uint4*>(row) + k / 8);
    const uint32_t parts[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = __uint_as_float(parts[i] << 16);
      out[2 * i + 1] = __uint_as_float(parts[i] & 0xffff0000u);
    }
  }
};

// The eight nibbles of values k..k+7 of a 32-value block: bytes (k % 16).. of its 16.
struct NibbleBlock {
  uint32_t first;
  uint32_t second;
  __device__ NibbleBlock(const std::byte* low, int64_t k) {
    const auto* block = low + k / 32 * 16;
    const uint2 words = *reinterpret_cast<const uint2*>(block + k % 16);
    first = nibbles(words.x, k % 32 >= 16);
    second = nibbles(words.y, k % 32 >= 16);
  }
  __device__ __forceinline__ float value(int i) const {
    return static_cast<float>(unsigned_byte(i < 4 ? first : second, i % 4));
  }
};

template <>
struct PackedRow<PAVO_TYPE_Q4_0> {
  const std::byte* low;
  const uint16_t* scale;
  __device__ PackedRow(const std::byte* row, const WeightLayout& layout)
      : low(row), scale(reinterpret_cast<const uint16_t*>(row + layout.scale_offset)) {}
  __device__ __forceinline__ void decode8(int64_t k, float* out) const {
    const NibbleBlock block(low, k);
    const float d = f16_to_f32(scale[k / 32]);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      out[i] = d * (block.value(i) - 8.0f);
    }
  }
};

template <>
struct PackedRow<PAVO_TYPE_Q4_1> {
  const std::byte* low;
  const uint32_t* scale;
  __device__ PackedRow(const std::byte* row, const WeightLayout& layout)
      : low(row), scale(reinterpret_cast<const uint32_t*>(row + layout.scale_offset)) {}
  __device__ __forceinline__ void decode8(int64_t k, float* out) const {
    const NibbleBlock block(low, k);
    const float2 dm = f16x2_to_f32(scale[k / 32]);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      out[i] = fmaf(dm.x, block.value(i), dm.y);
    }
  }
};

template <>
struct PackedRow<PAVO_TYPE_Q8_0> {
  const std::byte* low;
  const uint16_t* scale;
  __device__ PackedRow(const std::byte* row, const WeightLayout& layout)
      : low(row), scale(reinterpret_cast<const uint16_t*>(row + layout.scale_offset)) {}
  __device__ __forceinline__ void decode8(int64_t k, float* out) const {
    const uint2 words = *reinterpret_cast<const uint2*>(low + k);
    const float d = f16_to_f32(scale[k / 32]);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      out[i] = d * static_cast<float>(signed_byte(i < 4 ? words.x : words.y, i % 4));
    }
  }
};

template <>
struct PackedRow<PAVO_TYPE_Q4_K> {
  const std::byte* low;
  const std::byte* scale;
  __device__ PackedRow(const std::byte* row, const WeightLayout& layout)
      : low(row), scale(row + layout.scale_offset) {}
  __device__ __forceinline__ void decode8(int64_t k, float* out) const {
    const int in_block = static_cast<int>(k % 256);
    const std::byte* header = scale + k / 256 * 16;
    const float2 d = f16x2_to_f32(*reinterpret_cast<const uint32_t*>(header));
    uint8_t multiplier, minimum;
    pavo_q4_k_scale_min(
        reinterpret_cast<const uint8_t*>(header) + 4, in_block / 32, &multiplier, &minimum);
    const float step = d.x * static_cast<float>(multiplier);
    const float offset = d.y * static_cast<float>(minimum);
    // Sub-blocks 2p and 2p+1 share 32 bytes: low halves first.
    const std::byte* block = low + k / 256 * 128 + in_block / 64 * 32 + in_block % 32;
    const uint2 words = *reinterpret_cast<const uint2*>(block);
    const bool high = in_block % 64 >= 32;
    const uint32_t first = nibbles(words.x, high);
    const uint32_t second = nibbles(words.y, high);
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const int32_t quant = unsigned_byte(i < 4 ? first : second, i % 4);
      out[i] = fmaf(step, static_cast<float>(quant), -offset);
    }
  }
};

template <>
struct PackedRow<PAVO_TYPE_Q6_K> {
  const std::byte* low;
  const std::byte* high;
  const int8_t* scale;
  const uint16_t* extra;
  __device__ PackedRow(const std::byte* row, const WeightLayout& layout)
      : low(row),
        high(row + layout.high_offset),
        scale(reinterpret_cast<const int8_t*>(row + layout.scale_offset)),
        extra(reinterpret_cast<const uint16_t*>(row + layout.extra_offset)) {}
  __device__ __forceinline__ void decode8(int64_t k, float* out) const {
    const int in_block = static_cast<int>(k % 256);
    const int half = in_block / 128;          // of 128 values
    const int quarter = in_block % 128 / 32;  // which of the four values that share bytes
    const int position = in_block % 32;
    const std::byte* ql = low + k / 256 * 128 + half * 64 + quarter % 2 * 32 + position;
    const std::byte* qh = high + k / 256 * 64 + half * 32 + position;
    const uint2 low_words = *reinterpret_cast<const uint2*>(ql);
    const uint2 high_words = *reinterpret_cast<const uint2*>(qh);
    const float d = f16_to_f32(extra[k / 256]) * static_cast<float>(scale[k / 16]);
    const int shift = 2 * quarter;
    const uint32_t first =
        nibbles(low_words.x, quarter >= 2) | ((high_words.x >> shift) & 0x03030303u) << 4;
    const uint32_t second =
        nibbles(low_words.y, quarter >= 2) | ((high_words.y >> shift) & 0x03030303u) << 4;
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      out[i] = d * static_cast<float>(unsigned_byte(i < 4 ? first : second, i % 4) - 32);
    }
  }
};

}  // namespace pavo::cuda
