#include "kernels/host/error.h"

#include "pavo/plugin_helpers.h"

namespace pavo::cuda {

int32_t status_of(cudaError_t code) {
  switch (code) {
    case cudaSuccess:
      return PAVO_OK;
    case cudaErrorMemoryAllocation:
      return PAVO_ERROR_OUT_OF_MEMORY;
    case cudaErrorNoDevice:
    case cudaErrorInvalidDevice:
    case cudaErrorInsufficientDriver:
    case cudaErrorDevicesUnavailable:
      return PAVO_ERROR_NO_DEVICE;
    // After these the process can use the device no more.
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorIllegalInstruction:
    case cudaErrorInvalidPc:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContextIsDestroyed:
    case cudaErrorCudartUnloading:
    case cudaErrorUnknown:
      return PAVO_ERROR_DEVICE_LOST;
    default:
      return PAVO_ERROR_NODE_FAILED;
  }
}

int32_t fail_cuda(pavo_error* error, cudaError_t code, const char* call, const char* about) {
  cudaGetLastError();  // an error that is not sticky must not surface in the next check
  const char* hint = "";
  switch (code) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidPtx:
    case cudaErrorUnsupportedPtxVersion:
      hint = "; the plugin has no code for this device: try a newer driver or another plugin";
      break;
    case cudaErrorInvalidConfiguration:
      hint = "; the launch is beyond the chip's limits, which is a fault of the plugin";
      break;
    default:
      break;
  }
  const int32_t status = sdk::fail(
      error,
      status_of(code),
      "%s%s%s: %s (%s)%s",
      about == nullptr ? "" : about,
      about == nullptr ? "" : ": ",
      call,
      cudaGetErrorName(code),
      cudaGetErrorString(code),
      hint);
  if (error != nullptr && error->struct_size >= sizeof(pavo_error)) {
    error->domain = PAVO_DOMAIN_CUDA_RUNTIME;
    error->native_code = code;
  }
  return status;
}

}  // namespace pavo::cuda
