// GP100 (P100): facts, each with its source, then the operations that kernels call.
//
// PG: CUDA C++ Programming Guide 12.4, table "Technical Specifications per Compute Capability".
// Board: vendor datasheet of the P100 PCIe 16 GB; it stands in for what a profile leaves out.
#pragma once

#include <cstdint>

namespace pavo::cuda {

struct Sm60 {
  static constexpr int32_t kComputeCapability = 60;
  static constexpr int64_t kSharedBytesPerBlock = 48 * 1024;  // PG
  static constexpr int64_t kSharedBytesPerSm = 64 * 1024;     // PG
  static constexpr int32_t kRegistersPerSm = 64 * 1024;       // PG, of 32 bits
  static constexpr int32_t kThreadsPerSm = 2048;              // PG
  static constexpr int32_t kBlocksPerSm = 32;                 // PG
  static constexpr bool kFastHalf = true;                     // PG: f16 at twice the f32 rate
  static constexpr bool kHasDot4 = false;                     // PG: from 6.1 on
  static constexpr bool kHasTensorCores = false;              // PG: from 7.0 on
  static constexpr int32_t kSmCount = 56;                     // board
  static constexpr int64_t kMemoryBytes = int64_t{16} << 30;  // board
  static constexpr int64_t kL2Bytes = int64_t{4} << 20;       // GP100 white paper
  static constexpr double kBandwidthBytesPerS = 732e9;        // board
  static constexpr double kF32Flops = 9.3e12;                 // board

  // No such instruction here: four sign-extended bytes, multiplied and added.
  static __device__ __forceinline__ int32_t dot4(int32_t a, int32_t b, int32_t c) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      c += static_cast<int8_t>(a >> (8 * i)) * static_cast<int8_t>(b >> (8 * i));
    }
    return c;
  }

  // Through the read-only path: plain global loads of Pascal do not use L1.
  template <typename T>
  static __device__ __forceinline__ T load_streaming(const T* address) {
    return __ldg(address);
  }
};

}  // namespace pavo::cuda
