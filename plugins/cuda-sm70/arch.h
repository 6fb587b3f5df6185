// GV100 (V100, Titan V): facts, each with its source, then the operations that kernels call.
//
// PG: CUDA C++ Programming Guide 12.4, table "Technical Specifications per Compute Capability".
// Board: vendor datasheet of the V100 PCIe 16 GB; it stands in for what a profile leaves out.
#pragma once

#include <cstdint>

namespace pavo::cuda {

struct Sm70 {
  static constexpr int32_t kComputeCapability = 70;
  static constexpr int64_t kSharedBytesPerBlock = 96 * 1024;  // PG, opt-in; 48 KB without
  static constexpr int64_t kSharedBytesPerSm = 96 * 1024;     // PG
  static constexpr int32_t kRegistersPerSm = 64 * 1024;       // PG, of 32 bits
  static constexpr int32_t kThreadsPerSm = 2048;              // PG
  static constexpr int32_t kBlocksPerSm = 32;                 // PG
  static constexpr bool kFastHalf = true;                     // PG: f16 at twice the f32 rate
  static constexpr bool kHasDot4 = true;                      // PG: from 6.1 on
  static constexpr bool kHasTensorCores = true;               // PG: from 7.0 on
  static constexpr int32_t kSmCount = 80;                     // board
  static constexpr int64_t kMemoryBytes = int64_t{16} << 30;  // board
  static constexpr int64_t kL2Bytes = int64_t{6} << 20;       // board
  static constexpr double kBandwidthBytesPerS = 900e9;        // board
  static constexpr double kF32Flops = 14.1e12;                // board

  static __device__ __forceinline__ int32_t dot4(int32_t a, int32_t b, int32_t c) {
    return __dp4a(a, b, c);
  }

  // Evict-first: Volta keeps global loads in L1, where streamed weights would push out the rest.
  template <typename T>
  static __device__ __forceinline__ T load_streaming(const T* address) {
    return __ldcs(address);
  }
};

}  // namespace pavo::cuda
