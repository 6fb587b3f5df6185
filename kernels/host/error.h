// From CUDA's error numbers to the ABI's status codes.
#pragma once

#include <cstdint>

#include <cuda_runtime_api.h>

#include "pavo/plugin.h"

namespace pavo::cuda {

// PAVO_ERROR_* for a failed call: out of memory, device lost (the context is gone for good, with
// all its memory), no device, or node failed (the device is still usable).
int32_t status_of(cudaError_t code);

// Fills *error with call text, error name and what CUDA says, and clears CUDA's last error. `about`
// (may be NULL) says what was being done: "blk.0.attn_q, kernel matmul_generic".
int32_t fail_cuda(pavo_error* error, cudaError_t code, const char* call, const char* about);

}  // namespace pavo::cuda

// For functions that return a status and have `pavo_error* error`.
#define PAVO_CUDA_TRY(call)                                               \
  do {                                                                    \
    if (const cudaError_t cuda_code = (call); cuda_code != cudaSuccess) { \
      return pavo::cuda::fail_cuda(error, cuda_code, #call, nullptr);     \
    }                                                                     \
  } while (0)
#define PAVO_TRY(call)                                          \
  do {                                                          \
    if (const int32_t try_code = (call); try_code != PAVO_OK) { \
      return try_code;                                          \
    }                                                           \
  } while (0)
