#include "kernels/host/memory.h"

#include <algorithm>
#include <cinttypes>

#include <cuda_runtime_api.h>

#include "pavo/plugin_helpers.h"

#include "kernels/host/error.h"

namespace pavo::cuda {
namespace {

// Small requests share a slab; one of half a slab or more gets its own, rounded to the 2 MB pages
// of the driver. A free slab of at most kKeepBytes is kept for the next request.
constexpr int64_t kSlabBytes = int64_t{32} << 20;
constexpr int64_t kPageBytes = int64_t{2} << 20;
constexpr int64_t kKeepBytes = kSlabBytes;

}  // namespace

MemoryPool::MemoryPool(int32_t kind, int64_t budget_bytes, AllocationFaults* faults)
    : kind_(kind), budget_bytes_(budget_bytes), faults_(faults) {}

MemoryPool::~MemoryPool() {
  release_free_slabs(0);
}

void MemoryPool::release(std::byte* slab) const {
  if (kind_ == PAVO_MEMORY_DEVICE) {
    cudaFree(slab);
  } else {
    cudaFreeHost(slab);
  }
}

void MemoryPool::release_free_slabs(int64_t keep_bytes) {
  while (pool_.reserved_bytes() - pool_.used_bytes() > keep_bytes) {
    const auto [slab, size] = pool_.remove_free_slab();
    if (slab == nullptr) {
      return;
    }
    release(slab);
  }
}

int32_t MemoryPool::take_slab(int64_t size_bytes, std::byte** out) {
  if (budget_bytes_ > 0 && size_bytes > budget_bytes_ - pool_.reserved_bytes()) {
    return PAVO_ERROR_OUT_OF_MEMORY;
  }
  void* memory = nullptr;
  // Portable: any device's copies may use it.
  const cudaError_t code =
      kind_ == PAVO_MEMORY_DEVICE
          ? cudaMalloc(&memory, static_cast<size_t>(size_bytes))
          : cudaHostAlloc(&memory, static_cast<size_t>(size_bytes), cudaHostAllocPortable);
  if (code != cudaSuccess) {
    cudaGetLastError();
    return status_of(code) == PAVO_OK ? PAVO_ERROR_INTERNAL : status_of(code);
  }
  *out = static_cast<std::byte*>(memory);
  return PAVO_OK;
}

// Tries a whole slab, then only what is needed, then again without the free slabs.
int32_t MemoryPool::grow(int64_t size_bytes, pavo_error* error) {
  const int64_t needed = BlockPool::rounded(size_bytes);
  const int64_t paged = (needed + kPageBytes - 1) / kPageBytes * kPageBytes;
  const int64_t tries[] = {needed >= kSlabBytes / 2 ? paged : kSlabBytes, paged, needed};
  int32_t code = PAVO_ERROR_OUT_OF_MEMORY;
  for (const bool trimmed : {false, true}) {
    if (trimmed) {
      release_free_slabs(0);
    }
    for (const int64_t size : tries) {
      std::byte* slab = nullptr;
      code = take_slab(size, &slab);
      if (code == PAVO_OK) {
        pool_.add_slab(slab, size);
        return PAVO_OK;
      }
      if (code != PAVO_ERROR_OUT_OF_MEMORY) {
        return sdk::fail(
            error, code, "allocating %" PRId64 " bytes failed: the device is not usable", size);
      }
    }
  }
  return out_of_memory(size_bytes, error);
}

int32_t MemoryPool::out_of_memory(int64_t size_bytes, pavo_error* error) const {
  if (kind_ != PAVO_MEMORY_DEVICE) {
    return sdk::fail(
        error,
        PAVO_ERROR_OUT_OF_MEMORY,
        "pinned host memory: expected %" PRId64 " bytes to be free; %" PRId64
        " are in use here; try again when other programs hold less memory",
        size_bytes,
        pool_.used_bytes());
  }
  size_t free = 0;
  size_t total = 0;
  cudaMemGetInfo(&free, &total);
  cudaGetLastError();
  return sdk::fail(
      error,
      PAVO_ERROR_OUT_OF_MEMORY,
      "device memory: expected %" PRId64 " bytes to be free; %" PRId64
      " are in use here, budget %" PRId64
      "%s, the device has %zu of %zu free; try a smaller context or batch, or fewer layers here",
      size_bytes,
      pool_.used_bytes(),
      budget_bytes_,
      budget_bytes_ == 0 ? " (none)" : "",
      free,
      total);
}

int32_t MemoryPool::allocate(int64_t size_bytes, std::byte** out, pavo_error* error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (size_bytes < 0 || size_bytes > (int64_t{1} << 50)) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected a buffer of 0 to 2^50 bytes, got %" PRId64,
        size_bytes);
  }
  if (size_bytes == 0) {
    *out = nullptr;
    return PAVO_OK;
  }
  if (faults_->next_fails()) {
    return out_of_memory(size_bytes, error);
  }
  std::byte* memory = pool_.take(size_bytes);
  if (memory == nullptr) {
    PAVO_TRY(grow(size_bytes, error));
    memory = pool_.take(size_bytes);
  }
  *out = memory;
  return PAVO_OK;
}

void MemoryPool::free(std::byte* memory) {
  if (memory == nullptr) {
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  pool_.give(memory);
  release_free_slabs(kKeepBytes);
}

int64_t MemoryPool::used_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pool_.used_bytes();
}

int64_t MemoryPool::reserved_bytes() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return pool_.reserved_bytes();
}

}  // namespace pavo::cuda
