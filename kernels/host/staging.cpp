#include "kernels/host/staging.h"

#include "kernels/host/error.h"

namespace pavo::cuda {

Staging::~Staging() {
  pavo_error ignored = {};
  finish(&ignored);
  pool_->release(memory_);
}

int32_t Staging::wait(size_t half, pavo_error* error) {
  if (const Event event = std::move(events_[half]); event != nullptr) {
    PAVO_CUDA_TRY(cudaEventSynchronize(event.get()));
  }
  return PAVO_OK;
}

int32_t Staging::next(std::byte** half, pavo_error* error) {
  current_ = 1 - current_;
  PAVO_TRY(wait(current_, error));
  *half = memory_ + static_cast<int64_t>(current_) * kHalfBytes;
  return PAVO_OK;
}

int32_t Staging::queued(cudaStream_t stream, pavo_error* error) {
  return pool_->events_->record(stream, &events_[current_], error);
}

int32_t Staging::finish(pavo_error* error) {
  PAVO_TRY(wait(1 - current_, error));
  return wait(current_, error);
}

StagingPool::~StagingPool() {
  trim();
}

void StagingPool::trim() {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (std::byte* memory : free_) {
    pinned_->free(memory);
    --made_;
  }
  free_.clear();
}

int32_t StagingPool::acquire(std::unique_ptr<Staging>* out, pavo_error* error) {
  std::unique_lock<std::mutex> lock(mutex_);
  released_.wait(lock, [this] { return !free_.empty() || made_ < kMost; });
  std::byte* memory = nullptr;
  if (free_.empty()) {
    free_.reserve(kMost);
    PAVO_TRY(pinned_->allocate(2 * Staging::kHalfBytes, &memory, error));
    ++made_;
  } else {
    memory = free_.back();
    free_.pop_back();
  }
  out->reset(new Staging(this, memory));
  return PAVO_OK;
}

void StagingPool::release(std::byte* memory) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(memory);
  }
  released_.notify_one();
}

}  // namespace pavo::cuda
