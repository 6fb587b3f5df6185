// CUDA events, shared by the timelines that wait for the same work and used again afterwards.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>

#include "pavo/plugin.h"

namespace pavo::cuda {

// An event returns to its pool when the last holder lets go.
using Event = std::shared_ptr<CUevent_st>;

// [any] The pool must outlive its events, which the device guarantees.
class EventPool {
 public:
  EventPool() = default;
  ~EventPool();
  EventPool(const EventPool&) = delete;
  EventPool& operator=(const EventPool&) = delete;

  // An event recorded in `stream` now.
  int32_t record(cudaStream_t stream, Event* out, pavo_error* error);

 private:
  void give(cudaEvent_t event);

  std::mutex mutex_;
  std::vector<cudaEvent_t> free_;
  size_t created_ = 0;
};

}  // namespace pavo::cuda
