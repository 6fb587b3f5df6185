// Vector loads and stores, and whether an address allows them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/common/rows.h"

namespace pavo::cuda {

// True if every address is a multiple of 16. Views may begin anywhere, so launch functions ask.
template <typename... Pointers>
bool aligned16(const Pointers*... pointers) {
  return ((reinterpret_cast<uintptr_t>(pointers) % 16 == 0) && ...);
}

// True if every row begins at a multiple of 16 bytes, given that the first one does.
inline bool rows_aligned16(const RowMap& map) {
  return map.inner_stride % 4 == 0 && map.middle_stride % 4 == 0 && map.outer_stride % 4 == 0;
}

__device__ __forceinline__ float4 load4(const float* address) {
  return *reinterpret_cast<const float4*>(address);
}

__device__ __forceinline__ void store4(float* address, float4 value) {
  *reinterpret_cast<float4*>(address) = value;
}

// Applies f to each of four lanes of one or two vectors.
template <typename F>
__device__ __forceinline__ float4 map4(float4 a, float4 b, F f) {
  return make_float4(f(a.x, b.x), f(a.y, b.y), f(a.z, b.z), f(a.w, b.w));
}

template <typename F>
__device__ __forceinline__ float4 map4(float4 a, F f) {
  return make_float4(f(a.x), f(a.y), f(a.z), f(a.w));
}

__device__ __forceinline__ float sum4(float4 a) {
  return (a.x + a.y) + (a.z + a.w);
}

}  // namespace pavo::cuda
