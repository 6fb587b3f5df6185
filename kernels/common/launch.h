// Launcher: the one door through which kernels reach the device.
//
// It checks the geometry against the limits of the plugin's chip (the device may allow more),
// counts, names the kernel for error messages, and in a dry run launches nothing: so the number of
// launches of a plan and their limits are known without a GPU.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>

#include <cuda_runtime_api.h>

namespace pavo::cuda {

constexpr uint32_t kMaxThreadsPerBlock = 1024;
constexpr uint32_t kMaxGridX = 0x7fffffffu;
constexpr uint32_t kMaxGridYz = 65535;
// More needs an opt-in per kernel, where the chip has more.
constexpr size_t kDefaultSharedBytes = 48 * 1024;

struct LaunchRecord {
  const char* kernel = "";
  dim3 grid;
  dim3 block;
  size_t shared_bytes = 0;
};

class Launcher {
 public:
  // `shared_limit`: bytes that a block may use on the plugin's chip.
  Launcher(cudaStream_t stream, int64_t shared_limit)
      : stream_(stream), shared_limit_(shared_limit) {}
  // Launches nothing.
  static Launcher dry(int64_t shared_limit) {
    Launcher launcher(nullptr, shared_limit);
    launcher.dry_ = true;
    return launcher;
  }

  // Runs kernel<<<grid, block, shared_bytes>>>(values...). An empty grid is no launch. `name` is
  // the variant's, of static storage. Returns cudaErrorInvalidConfiguration for a geometry beyond
  // the limits, otherwise what the runtime says of the launch.
  template <typename... Params, typename... Values>
  cudaError_t launch(
      const char* name,
      void (*kernel)(Params...),
      dim3 grid,
      dim3 block,
      size_t shared_bytes,
      Values&&... values) {
    std::tuple<Params...> held(std::forward<Values>(values)...);
    return std::apply(
        [&](auto&... value) {
          std::array<void*, sizeof...(Params)> addresses = {address_of(value)...};
          return issue(
              {name, grid, block, shared_bytes},
              reinterpret_cast<const void*>(kernel),
              addresses.data());
        },
        held);
  }

  cudaStream_t stream() const { return stream_; }
  bool is_dry() const { return dry_; }
  int32_t launches() const { return launches_; }
  // The latest launch, also one that was refused.
  const LaunchRecord& last() const { return last_; }

 private:
  template <typename T>
  static void* address_of(T& value) {
    return const_cast<void*>(static_cast<const void*>(&value));
  }
  cudaError_t issue(const LaunchRecord& record, const void* kernel, void** values);

  cudaStream_t stream_;
  int64_t shared_limit_;
  bool dry_ = false;
  int32_t launches_ = 0;
  LaunchRecord last_;
};

// Blocks of `size` that cover `count`.
constexpr int64_t blocks_for(int64_t count, int64_t size) {
  return (count + size - 1) / size;
}

}  // namespace pavo::cuda
