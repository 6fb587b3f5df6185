// An opened CPU device: its threads, its memory, copies.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pavo/plugin.h"

#include "plugins/cpu/options.h"
#include "plugins/cpu/thread_pool.h"

struct pavo_buffer {
  pavo_device* device;
  std::byte* data;
  int64_t size_bytes;
  bool imported;  // the host's memory: never written, never freed
};

struct pavo_device {
 public:
  // Starts the threads, and says so if the system has too few.
  pavo_device(const pavo_host_api& host, const pavo::cpu::Options& options);
  ~pavo_device();
  pavo_device(const pavo_device&) = delete;
  pavo_device& operator=(const pavo_device&) = delete;

  const pavo::cpu::Options& options() const { return options_; }
  pavo::cpu::ThreadPool& pool() { return pool_; }
  int64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }

  int32_t buffer_create(int64_t size_bytes, pavo_buffer** out, pavo_error* error);
  int32_t buffer_import(
      const void* memory, int64_t size_bytes, pavo_buffer** out, pavo_error* error);
  void buffer_destroy(pavo_buffer* buffer);

 private:
  // One line for the host's log, of up to 95 bytes.
  __attribute__((format(printf, 3, 4))) void log(int32_t level, const char* format, ...);

  pavo::cpu::ThreadPool pool_;  // first: it lies on cache lines of its own
  const pavo_host_api& host_;
  const pavo::cpu::Options options_;
  std::atomic<int64_t> used_bytes_{0};
  std::atomic<int32_t> buffers_{0};
};

namespace pavo::cpu {

// Checks that bytes offset..offset+size-1 lie in a buffer of this device.
int32_t check_range(
    const pavo_device* device,
    const pavo_binding& binding,
    int64_t size_bytes,
    const char* what,
    pavo_error* error);

// The copy of the ABI without its fences: all regions are checked before the first byte moves.
int32_t copy_regions(
    pavo_device* device, const pavo_copy_region* regions, uint32_t count, pavo_error* error);

// A small matmul with a result known beforehand, through the kernel that would serve it.
int32_t self_test(pavo_device* device, pavo_error* error);

}  // namespace pavo::cpu
