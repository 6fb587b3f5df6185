// entry<K, Arch>(): the only way to register a kernel; see kernel.h for the form of K.
#pragma once

#include <string_view>

#include "kernels/common/kernel.h"

namespace pavo::cuda {

template <typename K, typename Arch>
constexpr Kernel entry() {
  static_assert(K::kDecision == PAVO_ACCEPT || K::kDecision == PAVO_ACCEPT_SLOW);
  static_assert(std::string_view(K::kName).size() < sizeof(pavo_verdict::variant));
  static_assert(K::kThreads % 32 == 0 && K::kThreads <= kMaxThreadsPerBlock);
  static_assert(
      K::kThreads * K::kMinBlocksPerSm <= Arch::kThreadsPerSm &&
          K::kMinBlocksPerSm <= Arch::kBlocksPerSm,
      "the asked occupancy does not exist on this chip");
  return {K::kName, K::kOp, K::kDecision, &K::supports, &K::workspace_bytes, &K::cost, &K::launch};
}

}  // namespace pavo::cuda
