// Runs CUDA kernels on the host, compiled by the host compiler from the unchanged .cuh files: one
// fiber a thread, one block after the other. It shows wrong indices (with AddressSanitizer also
// reads out of range), wrong arithmetic and missing barriers, not speed. Not thread safe.
//
// Must be included before any kernel header, and its folder be searched before the repository's
// root, so that its launch.h is found in place of the real one.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>

#include <cuda_fp16.h>
#include <vector_functions.h>
#include <vector_types.h>

#undef __shared__
#define __shared__ static  // one block at a time, so one copy will do
#define __launch_bounds__(...)

namespace pavo::emulator {

// Runs body once per thread of each block. kReverse runs the threads from the last to the first, so
// that what holds by chance in one order does not hold in the other.
enum class Order { kForward, kReverse };
void set_order(Order order);
void run(dim3 grid, dim3 block, size_t shared_bytes, const std::function<void()>& body);
// Shared memory of the launch, filled with NaN at the start of each block.
float* dynamic_shared();

void wait_block();
// Gives `bits` to the warp and returns what the lane `from` gave.
uint64_t exchange(uint64_t bits, uint32_t from);
uint32_t lane();

template <typename T>
T shuffle(T value, uint32_t from) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = exchange(bits, from);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename To, typename From>
To bit_cast(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace pavo::emulator

extern uint3 threadIdx;
extern uint3 blockIdx;
extern dim3 gridDim;

using std::max;
using std::min;

inline void __syncthreads() {
  pavo::emulator::wait_block();
}
inline void __syncwarp() {
  pavo::emulator::exchange(0, pavo::emulator::lane());
}
template <typename T>
T __shfl_xor_sync(uint32_t, T value, int offset) {
  return pavo::emulator::shuffle(value, pavo::emulator::lane() ^ static_cast<uint32_t>(offset));
}
template <typename T>
T __ldg(const T* address) {
  return *address;
}
template <typename T>
T __ldcs(const T* address) {
  return *address;
}
template <typename T>
T atomicMin(T* address, T value) {
  const T old = *address;
  *address = value < old ? value : old;
  return old;
}
template <typename T>
T atomicMax(T* address, T value) {
  const T old = *address;
  *address = value > old ? value : old;
  return old;
}
inline void sincospif(float x, float* sine, float* cosine) {
  *sine = static_cast<float>(std::sin(M_PI * static_cast<double>(x)));
  *cosine = static_cast<float>(std::cos(M_PI * static_cast<double>(x)));
}
inline float __uint_as_float(uint32_t bits) {
  return pavo::emulator::bit_cast<float>(bits);
}
inline uint32_t __float_as_uint(float value) {
  return pavo::emulator::bit_cast<uint32_t>(value);
}
inline float __int_as_float(int32_t bits) {
  return pavo::emulator::bit_cast<float>(bits);
}
// Rounded from double, which holds a product of halves and nearly every sum with a third one.
inline __half half_of(double value) {
  return __float2half_rn(static_cast<float>(value));
}
inline double double_of(__half value) {
  return static_cast<double>(__half2float(value));
}
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) {
  return __half2(
      half_of(double_of(a.x) * double_of(b.x) + double_of(c.x)),
      half_of(double_of(a.y) * double_of(b.y) + double_of(c.y)));
}
inline int32_t __float2int_rn(float value) {
  return std::isnan(value) ? 0 : static_cast<int32_t>(std::rint(value));
}
inline uint32_t __byte_perm(uint32_t x, uint32_t y, uint32_t selector) {
  const uint64_t bytes = (static_cast<uint64_t>(y) << 32) | x;
  uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const uint32_t from = (selector >> (4 * i)) & 7u;
    result |= static_cast<uint32_t>((bytes >> (8 * from)) & 0xffu) << (8 * i);
  }
  return result;
}
inline int32_t __dp4a(int32_t a, int32_t b, int32_t c) {
  for (int i = 0; i < 4; ++i) {
    c += static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i));
  }
  return c;
}
