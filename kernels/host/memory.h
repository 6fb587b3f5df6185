// Device and pinned memory of one device, pooled, with a budget.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "pavo/plugin.h"

#include "kernels/host/block_pool.h"

namespace pavo::cuda {

// Decides which allocation fails, for tests (option fail_alloc_at). [any]
class AllocationFaults {
 public:
  explicit AllocationFaults(int64_t fail_at) : fail_at_(fail_at) {}
  // Counts one allocation; true if it shall fail.
  bool next_fails() { return ++count_ == fail_at_; }
  bool active() const { return fail_at_ > 0; }
  int64_t count() const { return count_; }

 private:
  const int64_t fail_at_;
  std::atomic<int64_t> count_{0};
};

class MemoryPool {
 public:
  // kind: PAVO_MEMORY_DEVICE or PAVO_MEMORY_HOST (pinned). budget_bytes 0: no limit.
  MemoryPool(int32_t kind, int64_t budget_bytes, AllocationFaults* faults);
  // The device must be current and all blocks given back.
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // [any] size_bytes >= 0; *out is NULL for 0. The address is a multiple of 256. The device must be
  // current. PAVO_ERROR_OUT_OF_MEMORY with the numbers.
  int32_t allocate(int64_t size_bytes, std::byte** out, pavo_error* error);
  // [any] NULL is allowed. The device must be current.
  void free(std::byte* memory);

  int64_t used_bytes() const;
  int64_t reserved_bytes() const;

 private:
  int32_t grow(int64_t size_bytes, pavo_error* error);
  int32_t take_slab(int64_t size_bytes, std::byte** out);
  void release(std::byte* slab) const;
  void release_free_slabs(int64_t keep_bytes);
  int32_t out_of_memory(int64_t size_bytes, pavo_error* error) const;

  const int32_t kind_;
  const int64_t budget_bytes_;
  AllocationFaults* const faults_;
  mutable std::mutex mutex_;
  BlockPool pool_;
};

}  // namespace pavo::cuda
