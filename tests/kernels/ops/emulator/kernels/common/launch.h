// Stands in for kernels/common/launch.h: launches run on the host (emulator.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <cuda_runtime_api.h>

#include "tests/kernels/ops/emulator/emulator.h"

namespace pavo::cuda {

constexpr uint32_t kMaxThreadsPerBlock = 1024;
constexpr uint32_t kMaxGridX = 0x7fffffffu;
constexpr uint32_t kMaxGridYz = 65535;
constexpr size_t kDefaultSharedBytes = 48 * 1024;

class Launcher {
 public:
  template <typename... Params, typename... Values>
  cudaError_t launch(
      const char* name,
      void (*kernel)(Params...),
      dim3 grid,
      dim3 block,
      size_t shared_bytes,
      Values&&... values) {
    if (block.x > kMaxThreadsPerBlock || grid.x > kMaxGridX || grid.y > kMaxGridYz ||
        shared_bytes > kDefaultSharedBytes) {
      return cudaErrorInvalidConfiguration;
    }
    launched.emplace_back(name);
    const std::tuple<Params...> held(std::forward<Values>(values)...);
    emulator::run(grid, block, shared_bytes, [&] { std::apply(kernel, held); });
    return cudaSuccess;
  }

  std::vector<std::string> launched;  // variants, in order
};

constexpr int64_t blocks_for(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

}  // namespace pavo::cuda
