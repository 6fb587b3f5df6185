// The shared memory that a launch asks for beyond the static one.
#pragma once

namespace pavo::cuda {

// 16-byte aligned; as many bytes as the launch said.
__device__ __forceinline__ float* dynamic_shared() {
  extern __shared__ float4 memory[];
  return reinterpret_cast<float*>(memory);
}

}  // namespace pavo::cuda
