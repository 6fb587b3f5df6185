#include "kernels/host/cublas.h"

#include <algorithm>
#include <string>

#include <boost/dll/shared_library.hpp>
#include <cublas_v2.h>

#include "pavo/plugin_helpers.h"

#include "kernels/host/error.h"

namespace pavo::cuda {

namespace {

// The header overloads this name, so decltype cannot say it.
using GemmEx = cublasStatus_t(
    cublasHandle_t,
    cublasOperation_t,
    cublasOperation_t,
    int,
    int,
    int,
    const void*,
    const void*,
    cudaDataType,
    int,
    const void*,
    cudaDataType,
    int,
    const void*,
    void*,
    cudaDataType,
    int,
    cublasComputeType_t,
    cublasGemmAlgo_t);

}  // namespace

struct CublasLibrary::Functions {
  boost::dll::shared_library library;
  decltype(&cublasCreate_v2) create;
  decltype(&cublasDestroy_v2) destroy;
  decltype(&cublasSetStream_v2) set_stream;
  GemmEx* gemm_ex;
};

namespace {

int32_t fail_cublas(pavo_error* error, cublasStatus_t code, const char* call) {
  const int32_t status =
      code == CUBLAS_STATUS_ALLOC_FAILED ? PAVO_ERROR_OUT_OF_MEMORY : PAVO_ERROR_NODE_FAILED;
  sdk::fail(error, status, "%s: cuBLAS status %d", call, static_cast<int>(code));
  if (error != nullptr && error->struct_size >= sizeof(pavo_error)) {
    error->domain = PAVO_DOMAIN_CUBLAS;
    error->native_code = code;
  }
  return status;
}

}  // namespace

template <typename Function>
Function* CublasLibrary::get(const Functions& functions, const char* name) {
  return &functions.library.get<Function>(name);
}

CublasLibrary CublasLibrary::load(int32_t major) {
  CublasLibrary found;
  try {
    auto functions = std::make_shared<Functions>();
    // By soname through the system's search, so that the loader's configuration decides.
    functions->library.load(
        "libcublas.so." + std::to_string(major),
        boost::dll::load_mode::search_system_folders | boost::dll::load_mode::rtld_lazy |
            boost::dll::load_mode::rtld_local);
    functions->create = get<decltype(cublasCreate_v2)>(*functions, "cublasCreate_v2");
    functions->destroy = get<decltype(cublasDestroy_v2)>(*functions, "cublasDestroy_v2");
    functions->set_stream = get<decltype(cublasSetStream_v2)>(*functions, "cublasSetStream_v2");
    functions->gemm_ex = get<GemmEx>(*functions, "cublasGemmEx");
    found.functions_ = std::move(functions);
    found.major_ = major;
  } catch (const std::exception&) {
    found = {};  // not installed, or too old to have these functions
  }
  return found;
}

const CublasLibrary& CublasLibrary::find(int32_t compute_capability) {
  static const CublasLibrary& k12 = *new CublasLibrary(load(12));
  if (k12.major() != 0 || compute_capability < 75) {
    return k12;
  }
  static const CublasLibrary& k13 = *new CublasLibrary(load(13));
  return k13;
}

int32_t Cublas::open(
    int32_t compute_capability,
    cudaStream_t stream,
    std::unique_ptr<Cublas>* out,
    pavo_error* error) {
  const CublasLibrary& library = CublasLibrary::find(compute_capability);
  if (library.major() == 0) {
    return sdk::fail(
        error,
        PAVO_ERROR_UNSUPPORTED,
        "cuBLAS 12%s was not found; going on without it",
        compute_capability >= 75 ? " or 13" : "");
  }
  std::unique_ptr<Cublas> opened(new Cublas(library));
  if (const cublasStatus_t code = library.functions_->create(&opened->handle_);
      code != CUBLAS_STATUS_SUCCESS) {
    return fail_cublas(error, code, "cublasCreate");
  }
  if (const cublasStatus_t code = library.functions_->set_stream(opened->handle_, stream);
      code != CUBLAS_STATUS_SUCCESS) {
    return fail_cublas(error, code, "cublasSetStream");
  }
  *out = std::move(opened);
  return PAVO_OK;
}

Cublas::~Cublas() {
  if (handle_ != nullptr) {
    library_.functions_->destroy(handle_);
  }
}

int32_t Cublas::matmul_f16(
    int64_t rows,
    int64_t columns,
    int64_t depth,
    const void* x,
    int64_t x_stride,
    const void* w,
    int64_t w_stride,
    float* out,
    int64_t out_stride,
    pavo_error* error) {
  const int64_t numbers[] = {rows, columns, depth, x_stride, w_stride, out_stride};
  if (*std::max_element(std::begin(numbers), std::end(numbers)) > 0x7fffffff) {
    return sdk::fail(error, PAVO_ERROR_INVALID_ARGUMENT, "cublasGemmEx: a size is beyond 2^31");
  }
  const float one = 1.0f;
  const float zero = 0.0f;
  // Column-major: out^T [N,T] = w [N,K] * x^T [K,T].
  const cublasStatus_t code = library_.functions_->gemm_ex(
      handle_,
      CUBLAS_OP_T,
      CUBLAS_OP_N,
      static_cast<int>(columns),
      static_cast<int>(rows),
      static_cast<int>(depth),
      &one,
      w,
      CUDA_R_16F,
      static_cast<int>(w_stride),
      x,
      CUDA_R_16F,
      static_cast<int>(x_stride),
      &zero,
      out,
      CUDA_R_32F,
      static_cast<int>(out_stride),
      CUBLAS_COMPUTE_32F,
      CUBLAS_GEMM_DEFAULT);
  return code == CUBLAS_STATUS_SUCCESS ? PAVO_OK : fail_cublas(error, code, "cublasGemmEx");
}

}  // namespace pavo::cuda
