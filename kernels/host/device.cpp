#include "kernels/host/device.h"

#include <algorithm>
#include <cinttypes>

#include "pavo/plugin_helpers.h"

#include "kernels/host/error.h"

namespace pavo::cuda {

Stream::~Stream() {
  if (stream_ != nullptr) {
    cudaStreamDestroy(stream_);
  }
}

int32_t Stream::create(pavo_error* error) {
  // Non-blocking: no order with the legacy stream that other code of the process may use.
  PAVO_CUDA_TRY(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking));
  return PAVO_OK;
}

int32_t check_range(
    const pavo_device* device,
    const pavo_binding& binding,
    int64_t size_bytes,
    const char* what,
    pavo_error* error) {
  const pavo_buffer* buffer = binding.buffer;
  if (buffer == nullptr || buffer->device != device) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "%s: expected a buffer of this device, got %s",
        what,
        buffer == nullptr ? "NULL" : "one of another device");
  }
  if (binding.offset < 0 || binding.offset > buffer->size_bytes ||
      size_bytes > buffer->size_bytes - binding.offset) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "%s: expected %" PRId64 " bytes at offset %" PRId64 ", the buffer has %" PRId64,
        what,
        size_bytes,
        binding.offset,
        buffer->size_bytes);
  }
  return PAVO_OK;
}

}  // namespace pavo::cuda

pavo_device::pavo_device(const pavo_plugin& plugin, const pavo::cuda::DeviceEntry& entry)
    : plugin_(plugin),
      entry_(entry),
      faults_(plugin.options().fail_alloc_at),
      device_memory_(PAVO_MEMORY_DEVICE, plugin.options().memory_budget_bytes, &faults_),
      pinned_memory_(PAVO_MEMORY_HOST, 0, &faults_),
      staging_(&pinned_memory_, &events_) {}

pavo_device::~pavo_device() {
  cudaSetDevice(entry_.ordinal);
  for (cudaStream_t stream : {compute(), copy_in(), copy_out()}) {
    if (stream != nullptr) {
      cudaStreamSynchronize(stream);
    }
  }
  cudaGetLastError();
  staging_.trim();
  report_memory();
}

// Of a host that closes a device before its buffers, or of a leak in here; also what a test that
// lets allocations fail must know.
void pavo_device::report_memory() const {
  const int64_t device_bytes = device_memory_.used_bytes();
  const int64_t pinned_bytes = pinned_memory_.used_bytes();
  if (device_bytes != 0 || pinned_bytes != 0) {
    plugin_.log(
        PAVO_LOG_ERROR,
        entry_.id + ": closed with " + std::to_string(device_bytes) + " bytes of device and " +
            std::to_string(pinned_bytes) +
            " bytes of pinned memory in use; buffers must be destroyed before their device");
  }
  if (faults_.active()) {
    plugin_.log(
        PAVO_LOG_WARN,
        entry_.id + ": fail_alloc_at: " + std::to_string(faults_.count()) + " allocations");
  }
}

int32_t pavo_device::init(pavo_error* error) {
  PAVO_TRY(enter(error));
  PAVO_TRY(compute_.create(error));
  PAVO_TRY(copy_in_.create(error));
  return copy_out_.create(error);
}

int32_t pavo_device::enter(pavo_error* error) {
  if (lost_.load(std::memory_order_acquire)) {
    return pavo::sdk::fail(
        error,
        PAVO_ERROR_DEVICE_LOST,
        "%s (%s) was lost by an earlier failure: %.*s",
        entry_.name.c_str(),
        entry_.id.c_str(),
        static_cast<int>(lost_error_.message_size),
        lost_error_.message);
  }
  PAVO_CUDA_TRY(cudaSetDevice(entry_.ordinal));
  return PAVO_OK;
}

int32_t pavo_device::note(int32_t status, const pavo_error& error) {
  if (status == PAVO_ERROR_DEVICE_LOST) {
    const std::lock_guard<std::mutex> lock(lost_mutex_);
    if (!lost_.load(std::memory_order_relaxed)) {
      lost_error_ = error;
      lost_.store(true, std::memory_order_release);
    }
  }
  return status;
}

pavo::cuda::Cublas* pavo_device::cublas() {
  if (!cublas_tried_ && options().cublas) {
    cublas_tried_ = true;
    pavo_error error = {};
    error.struct_size = sizeof error;
    if (pavo::cuda::Cublas::open(caps().compute_capability, compute(), &cublas_, &error) !=
        PAVO_OK) {
      plugin_.log(PAVO_LOG_INFO, {error.message, error.message_size});
    }
  }
  return cublas_.get();
}

int32_t pavo_device::memory(pavo_memory_info* info, pavo_error* error) {
  size_t free = 0;
  size_t total = 0;
  PAVO_CUDA_TRY(cudaMemGetInfo(&free, &total));
  // Free slabs of the pool serve the next request as well as free memory of the device does.
  const int64_t used = device_memory_.used_bytes();
  int64_t available = static_cast<int64_t>(free) + device_memory_.reserved_bytes() - used;
  if (options().memory_budget_bytes > 0) {
    available = std::min(available, options().memory_budget_bytes - used);
  }
  info->total_bytes = static_cast<int64_t>(total);
  info->free_bytes = std::max<int64_t>(available, 0);
  info->used_bytes = used;
  return PAVO_OK;
}

int32_t pavo_device::buffer_create(
    int64_t size_bytes, int32_t kind, pavo_buffer** out, pavo_error* error) {
  if (kind != PAVO_MEMORY_DEVICE && kind != PAVO_MEMORY_HOST) {
    return pavo::sdk::fail(
        error, PAVO_ERROR_INVALID_ARGUMENT, "expected a memory kind of 0 or 1, got %d", kind);
  }
  auto buffer = std::make_unique<pavo_buffer>();
  *buffer = {this, nullptr, size_bytes, kind};
  pavo::cuda::MemoryPool& pool = kind == PAVO_MEMORY_DEVICE ? device_memory_ : pinned_memory_;
  PAVO_TRY(pool.allocate(size_bytes, &buffer->data, error));
  *out = buffer.release();
  return PAVO_OK;
}

void pavo_device::buffer_destroy(pavo_buffer* buffer) {
  cudaSetDevice(entry_.ordinal);
  (buffer->kind == PAVO_MEMORY_DEVICE ? device_memory_ : pinned_memory_).free(buffer->data);
  delete buffer;
}
