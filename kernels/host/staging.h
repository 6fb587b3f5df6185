// Pinned double buffers for data that lies in pageable host memory: while one half travels, the
// other is filled or emptied by the CPU.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <cuda_runtime_api.h>

#include "pavo/plugin.h"

#include "kernels/host/event.h"
#include "kernels/host/memory.h"

namespace pavo::cuda {

class StagingPool;

// Two halves for one thread. Given back when it goes out of scope.
class Staging {
 public:
  static constexpr int64_t kHalfBytes = int64_t{4} << 20;

  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  // Waits for what still travels, since the halves go to the next user.
  ~Staging();

  // The half to use next, after waiting for its last transfer.
  int32_t next(std::byte** half, pavo_error* error);
  // The transfer of the half that next() gave is queued in `stream`.
  int32_t queued(cudaStream_t stream, pavo_error* error);
  // Waits for the transfer of the half before the one that next() gave last.
  int32_t wait_previous(pavo_error* error) { return wait(1 - current_, error); }
  // Waits until both halves are idle.
  int32_t finish(pavo_error* error);

 private:
  friend class StagingPool;
  Staging(StagingPool* pool, std::byte* memory) : pool_(pool), memory_(memory) {}
  int32_t wait(size_t half, pavo_error* error);

  StagingPool* pool_;
  std::byte* memory_;
  std::array<Event, 2> events_;
  size_t current_ = 1;
};

// [any] Makes at most kMost pairs, when they are first needed.
class StagingPool {
 public:
  static constexpr int32_t kMost = 2;

  StagingPool(MemoryPool* pinned, EventPool* events) : pinned_(pinned), events_(events) {}
  ~StagingPool();
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // Blocks while all pairs are in use. A thread must hold no other one.
  int32_t acquire(std::unique_ptr<Staging>* out, pavo_error* error);
  // Gives back the pairs that nobody uses. The device must be current.
  void trim();

 private:
  friend class Staging;
  void release(std::byte* memory);

  MemoryPool* const pinned_;
  EventPool* const events_;
  std::mutex mutex_;
  std::condition_variable released_;
  std::vector<std::byte*> free_;
  int32_t made_ = 0;
};

}  // namespace pavo::cuda
