// Captured CUDA graphs of one plan, one per set of addresses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <vector>

#include <cuda_runtime_api.h>

#include "pavo/plugin.h"

namespace pavo::cuda {

// [device]
class GraphCache {
 public:
  // A host alternates between a few sets of buffers at most; each graph costs device memory.
  static constexpr size_t kMost = 4;

  GraphCache() = default;
  // The device must be current and the graphs idle.
  ~GraphCache();
  GraphCache(const GraphCache&) = delete;
  GraphCache& operator=(const GraphCache&) = delete;

  // Queues what `issue` queues in `stream`: by replay if these addresses were captured before,
  // otherwise after capturing. If the graphs cannot be made at all, `issue` is run directly from
  // then on and works() is false. `issue` fills its own error.
  int32_t run(
      cudaStream_t stream,
      const std::vector<std::byte*>& addresses,
      const std::function<int32_t(pavo_error*)>& issue,
      pavo_error* error);

  bool works() const { return works_; }
  int64_t captures() const { return captures_; }
  int64_t replays() const { return replays_; }

 private:
  struct Entry {
    std::vector<std::byte*> addresses;
    cudaGraphExec_t executable;
  };

  int32_t capture(
      cudaStream_t stream,
      const std::function<int32_t(pavo_error*)>& issue,
      cudaGraph_t* out,
      pavo_error* error);
  cudaError_t make_executable(cudaGraph_t graph, const std::vector<std::byte*>& addresses);

  std::list<Entry> entries_;  // latest used first
  bool works_ = true;
  int64_t captures_ = 0;
  int64_t replays_ = 0;
};

}  // namespace pavo::cuda
