#include "kernels/host/event.h"

#include "kernels/host/error.h"

namespace pavo::cuda {

EventPool::~EventPool() {
  for (cudaEvent_t event : free_) {
    cudaEventDestroy(event);
  }
}

void EventPool::give(cudaEvent_t event) {
  const std::lock_guard<std::mutex> lock(mutex_);
  free_.push_back(event);
}

int32_t EventPool::record(cudaStream_t stream, Event* out, pavo_error* error) {
  cudaEvent_t event = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!free_.empty()) {
      event = free_.back();
      free_.pop_back();
    } else {
      free_.reserve(++created_);  // so that give() does not allocate
    }
  }
  if (event == nullptr) {
    // Blocking: a thread that waits sleeps. Without times, which would slow the device down.
    PAVO_CUDA_TRY(cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming));
  }
  Event held(event, [this](cudaEvent_t unused) { give(unused); });
  PAVO_CUDA_TRY(cudaEventRecord(event, stream));
  *out = std::move(held);
  return PAVO_OK;
}

}  // namespace pavo::cuda
