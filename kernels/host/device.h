// An opened CUDA device: streams, memory, events, and whether it is still there.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include <cuda_runtime_api.h>

#include "pavo/plugin.h"

#include "kernels/host/cublas.h"
#include "kernels/host/event.h"
#include "kernels/host/instance.h"
#include "kernels/host/memory.h"
#include "kernels/host/staging.h"

struct pavo_buffer {
  pavo_device* device;
  std::byte* data;  // device address; for pinned memory valid on both sides
  int64_t size_bytes;
  int32_t kind;  // PAVO_MEMORY_*
};

namespace pavo::cuda {

// A stream with the life of its device.
class Stream {
 public:
  Stream() = default;
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int32_t create(pavo_error* error);
  cudaStream_t get() const { return stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace pavo::cuda

struct pavo_device {
 public:
  pavo_device(const pavo_plugin& plugin, const pavo::cuda::DeviceEntry& entry);
  // Waits for the queues. Memory that is still in use is an error in the log.
  ~pavo_device();
  pavo_device(const pavo_device&) = delete;
  pavo_device& operator=(const pavo_device&) = delete;

  // Makes the context and the streams. After a failure only destruction is allowed.
  int32_t init(pavo_error* error);

  const pavo_plugin& plugin() const { return plugin_; }
  const pavo::cuda::Options& options() const { return plugin_.options(); }
  const pavo::cuda::Caps& caps() const { return entry_.caps; }
  const pavo::cuda::DeviceEntry& entry() const { return entry_; }

  // [any] Makes the device current in this thread; every entry point begins with it. A lost device
  // is PAVO_ERROR_DEVICE_LOST.
  int32_t enter(pavo_error* error);
  // [any] Remembers a loss of the device. Returns `status`.
  int32_t note(int32_t status, const pavo_error& error);

  cudaStream_t compute() const { return compute_.get(); }
  cudaStream_t copy_in() const { return copy_in_.get(); }    // host to device, device to device
  cudaStream_t copy_out() const { return copy_out_.get(); }  // device to host
  pavo::cuda::EventPool& events() { return events_; }
  pavo::cuda::MemoryPool& device_memory() { return device_memory_; }
  pavo::cuda::MemoryPool& pinned_memory() { return pinned_memory_; }
  pavo::cuda::StagingPool& staging() { return staging_; }
  // [device] Opened at the first call; NULL if the option is off or the library is not there.
  pavo::cuda::Cublas* cublas();

  // [any] As in plugin.h.
  int32_t memory(pavo_memory_info* info, pavo_error* error);
  int32_t buffer_create(int64_t size_bytes, int32_t kind, pavo_buffer** out, pavo_error* error);
  void buffer_destroy(pavo_buffer* buffer);

 private:
  void report_memory() const;

  const pavo_plugin& plugin_;
  const pavo::cuda::DeviceEntry& entry_;
  std::mutex lost_mutex_;
  std::atomic<bool> lost_{false};
  pavo_error lost_error_ = {};  // written once, before lost_

  // Destroyed in the opposite order.
  pavo::cuda::AllocationFaults faults_;
  pavo::cuda::MemoryPool device_memory_;
  pavo::cuda::MemoryPool pinned_memory_;
  pavo::cuda::EventPool events_;
  pavo::cuda::StagingPool staging_;
  pavo::cuda::Stream compute_;
  pavo::cuda::Stream copy_in_;
  pavo::cuda::Stream copy_out_;
  bool cublas_tried_ = false;
  std::unique_ptr<pavo::cuda::Cublas> cublas_;
};

namespace pavo::cuda {

// Checks that bytes offset..offset+size-1 lie in a buffer of this device.
int32_t check_range(
    const pavo_device* device,
    const pavo_binding& binding,
    int64_t size_bytes,
    const char* what,
    pavo_error* error);

}  // namespace pavo::cuda
