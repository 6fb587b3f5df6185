#include "kernels/common/launch.h"

namespace pavo::cuda {
namespace {

bool within_limits(const LaunchRecord& record, int64_t shared_limit) {
  const dim3& grid = record.grid;
  const dim3& block = record.block;
  const uint64_t threads = uint64_t{block.x} * block.y * block.z;
  return threads >= 1 && threads <= kMaxThreadsPerBlock && block.z <= 64 && grid.x <= kMaxGridX &&
         grid.y <= kMaxGridYz && grid.z <= kMaxGridYz &&
         record.shared_bytes <= static_cast<uint64_t>(shared_limit);
}

}  // namespace

cudaError_t Launcher::issue(const LaunchRecord& record, const void* kernel, void** values) {
  last_ = record;
  if (record.grid.x == 0 || record.grid.y == 0 || record.grid.z == 0) {
    return cudaSuccess;
  }
  if (!within_limits(record, shared_limit_)) {
    return cudaErrorInvalidConfiguration;
  }
  ++launches_;
  if (dry_) {
    return cudaSuccess;
  }
  if (record.shared_bytes > kDefaultSharedBytes) {
    const cudaError_t error = cudaFuncSetAttribute(
        kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(record.shared_bytes));
    if (error != cudaSuccess) {
      return error;
    }
  }
  return cudaLaunchKernel(kernel, record.grid, record.block, values, record.shared_bytes, stream_);
}

}  // namespace pavo::cuda
