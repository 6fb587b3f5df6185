// cuBLAS, opened at run time when a kernel asks for it. Nothing depends on it.
#pragma once

#include <cstdint>
#include <memory>

#include <cuda_runtime_api.h>

#include "pavo/plugin.h"

struct cublasContext;

namespace pavo::cuda {

// The functions of the shared library. Stays loaded until the process ends, as its threads and
// handlers may outlive any call.
class CublasLibrary {
 public:
  // Tries libcublas.so.12, then .so.13 on devices that it still knows (7.5 and later). Opened once
  // a process and major version.
  static const CublasLibrary& find(int32_t compute_capability);

  int64_t major() const { return major_; }  // 0: not there

 private:
  friend class Cublas;
  struct Functions;
  static CublasLibrary load(int32_t major);
  template <typename Function>
  static Function* get(const Functions& functions, const char* name);

  int32_t major_ = 0;
  std::shared_ptr<const Functions> functions_;
};

// A handle on one device and stream. [device]
class Cublas {
 public:
  // PAVO_ERROR_UNSUPPORTED if the library is not there.
  static int32_t open(
      int32_t compute_capability,
      cudaStream_t stream,
      std::unique_ptr<Cublas>* out,
      pavo_error* error);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // out[t,n] = sum_k x[t,k] * w[n,k]; w and x f16, out f32, all row-major with these row strides in
  // elements; sums in f32. Queued in the stream.
  int32_t matmul_f16(
      int64_t rows,
      int64_t columns,
      int64_t depth,
      const void* x,
      int64_t x_stride,
      const void* w,
      int64_t w_stride,
      float* out,
      int64_t out_stride,
      pavo_error* error);

 private:
  explicit Cublas(const CublasLibrary& library) : library_(library) {}

  const CublasLibrary& library_;
  cublasContext* handle_ = nullptr;
};

}  // namespace pavo::cuda
