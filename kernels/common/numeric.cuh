// Conversions between number formats, and the bytes and nibbles of words.
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

// Arithmetic on two halves of one word each; every operation rounds to f16.
__device__ __forceinline__ __half2 as_half2(uint32_t bits) {
  return *reinterpret_cast<const __half2*>(&bits);
}
__device__ __forceinline__ uint32_t half2_bits(__half2 value) {
  return *reinterpret_cast<const uint32_t*>(&value);
}
__device__ __forceinline__ uint32_t half2_fma(uint32_t a, uint32_t b, uint32_t c) {
  return half2_bits(__hfma2(as_half2(a), as_half2(b), as_half2(c)));
}
__device__ __forceinline__ uint32_t half2_add(uint32_t a, uint32_t b) {
  return half2_bits(__hadd2(as_half2(a), as_half2(b)));
}
// The sum of the two halves, rounded to f16.
__device__ __forceinline__ float half2_sum(uint32_t bits) {
  return __half2float(__hadd(__low2half(as_half2(bits)), __high2half(as_half2(bits))));
}
__device__ __forceinline__ uint32_t f32_to_half2(float low, float high) {
  return half2_bits(__floats2half2_rn(low, high));
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
  return (word >> (high ? 4 : 0)) & 0x0f0f0f0fu;
}

}  // namespace pavo::cuda
