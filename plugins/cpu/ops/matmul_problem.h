// One matrix product, out[t,n] = sum_k x[t,k] * w[n,k] (+ bias[n]), as its kernels take it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "plugins/cpu/thread_pool.h"

namespace pavo::cpu {

struct MatmulProblem {
  int32_t weight_type;   // PAVO_TYPE_*
  int64_t tokens;        // T
  int64_t rows;          // N
  int64_t columns;       // K, whole blocks of the weight type
  const float* x;        // [T] rows of K
  int64_t x_stride;      // floats from row to row
  const std::byte* w;    // [N] rows as in the file, without gaps, any alignment
  const float* bias;     // [N] or NULL
  float* out;            // [T] rows of N; must not overlap x
  int64_t out_stride;    // floats from row to row
  std::byte* workspace;  // as many bytes as the kernel asked for, 64-byte aligned
};

// A matmul kernel of one instruction set; {} where there is none for this machine.
struct MatmulFunctions {
  // Bytes of workspace for any number of rows, any weight type and any instruction set, since a
  // plan may outlive a change of the option simd. Pure.
  int64_t (*workspace_bytes)(int64_t tokens, int64_t columns, int32_t threads) = nullptr;
  // Each output is computed by one thread in an order that does not depend on the thread count.
  void (*run)(const MatmulProblem& problem, ThreadPool& pool) = nullptr;

  explicit operator bool() const { return run != nullptr; }
};

// Int8 activations, for q4_0 q4_1 q8_0 q4_k q6_k.
MatmulFunctions matmul_q8dot_functions();
// F32 activations, for every type that can_dequantize takes.
MatmulFunctions matmul_f32_functions();

}  // namespace pavo::cpu
