// What an Arch must provide: the facts of one chip and the operations that differ between chips.
//
// plugins/cuda-smXX/arch.h defines struct SmXX. Kernels are templates on it; they read facts with
// `if constexpr` and call operations, and never name an intrinsic that some chip lacks: such a name
// fails to compile even in a discarded branch, while a member function of another chip's struct is
// not looked at.
#pragma once

#include <cstdint>
#include <type_traits>

#include "kernels/common/caps.h"

namespace pavo::cuda {

template <typename Arch>
constexpr void check_arch() {
  static_assert(Arch::kComputeCapability >= 60);
  static_assert(Arch::kSharedBytesPerBlock <= Arch::kSharedBytesPerSm);
  static_assert(Arch::kRegistersPerSm > 0 && Arch::kThreadsPerSm > 0 && Arch::kBlocksPerSm > 0);
  static_assert(Arch::kSmCount > 0 && Arch::kL2Bytes > 0 && Arch::kMemoryBytes > 0);
  static_assert(Arch::kBandwidthBytesPerS > 0 && Arch::kF32Flops > 0);
  static_assert(std::is_same_v<const bool, decltype(Arch::kFastHalf)>);
  static_assert(std::is_same_v<const bool, decltype(Arch::kHasDot4)>);
  static_assert(std::is_same_v<const bool, decltype(Arch::kHasTensorCores)>);
  // int32 dot4(a, b, c): c + the sum of four products of signed bytes.
  static_assert(std::is_same_v<int32_t, decltype(Arch::dot4(int32_t(), int32_t(), int32_t()))>);
  // load_streaming(pointer): a load of data that is read once, so that it does not push out of the
  // caches what is read again. The pointed-to memory must not be written by the same kernel.
  static_assert(std::is_same_v<float, decltype(Arch::load_streaming((const float*)nullptr))>);
}

template <typename Arch>
ArchFacts arch_facts() {
  check_arch<Arch>();
  ArchFacts facts{};
  facts.compute_capability = Arch::kComputeCapability;
  facts.shared_bytes_per_block = Arch::kSharedBytesPerBlock;
  facts.shared_bytes_per_sm = Arch::kSharedBytesPerSm;
  facts.registers_per_sm = Arch::kRegistersPerSm;
  facts.threads_per_sm = Arch::kThreadsPerSm;
  facts.blocks_per_sm = Arch::kBlocksPerSm;
  facts.typical.compute_capability = Arch::kComputeCapability;
  facts.typical.sm_count = Arch::kSmCount;
  facts.typical.memory_bytes = Arch::kMemoryBytes;
  facts.typical.shared_bytes_per_block = Arch::kSharedBytesPerBlock;
  facts.typical.l2_bytes = Arch::kL2Bytes;
  facts.typical.bandwidth_bytes_per_s = Arch::kBandwidthBytesPerS;
  facts.typical.f32_flops = Arch::kF32Flops;
  return facts;
}

}  // namespace pavo::cuda
