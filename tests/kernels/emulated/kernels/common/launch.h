// Stands in for kernels/common/launch.h in an emulated plugin: a launch is queued in the fake
// runtime's stream and runs on the host when the stream gets there.
#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include <cuda_runtime_api.h>

#include "tests/fakes/cudart.h"
#include "tests/kernels/ops/emulator/emulator.h"

namespace pavo::cuda {

constexpr uint32_t kMaxThreadsPerBlock = 1024;
constexpr uint32_t kMaxGridX = 0x7fffffffu;
constexpr uint32_t kMaxGridYz = 65535;
constexpr size_t kDefaultSharedBytes = 48 * 1024;

struct LaunchRecord {
  const char* kernel = "";
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
};

class Launcher {
 public:
  Launcher(cudaStream_t stream, int64_t shared_limit)
      : stream_(stream), shared_limit_(shared_limit) {}
  static Launcher dry(int64_t shared_limit) {
    Launcher launcher(nullptr, shared_limit);
    launcher.dry_ = true;
    return launcher;
  }

  template <typename... Params, typename... Values>
  cudaError_t launch(
      const char* name,
      void (*kernel)(Params...),
      dim3 grid,
      dim3 block,
      size_t shared_bytes,
      Values&&... values) {
    last_ = {name, grid, block, shared_bytes};
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) {
      return cudaSuccess;
    }
    if (shared_bytes > static_cast<size_t>(shared_limit_)) {
      return cudaErrorInvalidConfiguration;
    }
    ++launches_;
    if (dry_) {
      return cudaSuccess;
    }
    const std::tuple<Params...> held(std::forward<Values>(values)...);
    return fakes::cudart::launch(stream_, [kernel, grid, block, shared_bytes, held] {
      emulator::run(grid, block, shared_bytes, [&] { std::apply(kernel, held); });
    });
  }

  cudaStream_t stream() const { return stream_; }
  bool is_dry() const { return dry_; }
  int32_t launches() const { return launches_; }
  const LaunchRecord& last() const { return last_; }

 private:
  cudaStream_t stream_;
  int64_t shared_limit_;
  bool dry_ = false;
  int32_t launches_ = 0;
  LaunchRecord last_;
};

constexpr int64_t blocks_for(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

}  // namespace pavo::cuda
