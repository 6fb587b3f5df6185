// GP102, GP104, GP106, GP107 (P40, P4, GTX 10xx): facts, each with its source, then the operations
// that kernels call.
//
// PG: CUDA C++ Programming Guide 12.4, table "Technical Specifications per Compute Capability".
// Board: vendor datasheet of the P40; it stands in for what a profile leaves out.
#pragma once

#include <cstdint>

namespace pavo::cuda {

struct Sm61 {
  static constexpr int32_t kComputeCapability = 61;
  static constexpr int64_t kSharedBytesPerBlock = 48 * 1024;  // PG
  static constexpr int64_t kSharedBytesPerSm = 96 * 1024;     // PG
  static constexpr int32_t kRegistersPerSm = 64 * 1024;       // PG, of 32 bits
  static constexpr int32_t kThreadsPerSm = 2048;              // PG
  static constexpr int32_t kBlocksPerSm = 32;                 // PG
  static constexpr bool kFastHalf = false;                    // PG: f16 at 1/64 of the f32 rate
  static constexpr bool kHasDot4 = true;                      // PG: from 6.1 on
  static constexpr bool kHasTensorCores = false;              // PG: from 7.0 on
  static constexpr int32_t kSmCount = 30;                     // board
  static constexpr int64_t kMemoryBytes = int64_t{24} << 30;  // board
  static constexpr int64_t kL2Bytes = int64_t{3} << 20;       // board
  static constexpr double kBandwidthBytesPerS = 346e9;        // board
  static constexpr double kF32Flops = 11.8e12;                // board

  static __device__ __forceinline__ int32_t dot4(int32_t a, int32_t b, int32_t c) {
    return __dp4a(a, b, c);
  }

  // Through the read-only path: plain global loads of Pascal do not use L1.
  template <typename T>
  static __device__ __forceinline__ T load_streaming(const T* address) {
    return __ldg(address);
  }
};

}  // namespace pavo::cuda
