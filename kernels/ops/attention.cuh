// attention: each token over the K/V rows of its own sequence; ops.inc has the formula.
//
// q: f32 [T,H,D], out: f32 [T,H,Dv], rows anywhere; K and V pages of any cache type of
// common/kv_page.cuh. Scores, softmax and sums are f32. The variants and what they share are in
// attention/.
#pragma once

#include "kernels/ops/attention/decode.cuh"
#include "kernels/ops/attention/generic.cuh"
#include "kernels/ops/attention/prompt.cuh"

namespace pavo::cuda {

template <typename Arch>
KernelList attention_kernels() {
  static constexpr Kernel kKernels[] = {
      entry<AttentionDecode<Arch, 4, 8>, Arch>(),
      entry<AttentionDecode<Arch, 16, 4>, Arch>(),
      entry<AttentionDecode<Arch, 8, 8>, Arch>(),
      entry<AttentionPrompt<Arch, 1>, Arch>(),
      entry<AttentionPrompt<Arch, 2>, Arch>(),
      entry<AttentionPrompt<Arch, 4>, Arch>(),
      entry<AttentionGeneric<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
