// attention: each token over the K/V rows of its own sequence; ops.inc has the formula.
//
// q: f32 [T,H,D], out: f32 [T,H,Dv], rows anywhere; K and V pages of any cache type of
// common/kv_page.cuh. Scores, softmax and sums are f32. The variants and what they share are in
// attention/.
#pragma once

#include "kernels/ops/attention/generic.cuh"

namespace pavo::cuda {

template <typename Arch>
KernelList attention_kernels() {
  static constexpr Kernel kKernels[] = {entry<AttentionGeneric<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
