// C++17: what the handles of the ABI point to, and the checks that every plugin owes its host
// before it uses an argument. Not for direct inclusion.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "pavo/plugin_base.h"

// What the handles of the ABI point to.
struct pavo_plugin {
  std::unique_ptr<pavo::sdk::Plugin> self;
  std::once_flag listed;
  std::vector<pavo::sdk::DeviceFacts> devices;

  const std::vector<pavo::sdk::DeviceFacts>& list() {
    std::call_once(listed, [this] { devices = self->list_devices(); });
    return devices;
  }
};
struct pavo_device {
  std::unique_ptr<pavo::sdk::Device> self;
  pavo_plugin* plugin = nullptr;
  const pavo_values* caps = nullptr;
};
struct pavo_buffer {
  std::unique_ptr<pavo::sdk::Buffer> self;
};
struct pavo_timeline {
  std::unique_ptr<pavo::sdk::Timeline> self;
};
struct pavo_plan {
  std::unique_ptr<pavo::sdk::Plan> self;
  uint32_t tensor_count = 0;
};

namespace pavo::sdk {

// guard() for a body that raises.
template <typename Body>
int32_t border(pavo_error* error, Body&& body) noexcept {
  return guard(error, [&]() -> int32_t {
    body();
    return PAVO_OK;
  });
}

template <typename T>
void destroy(T* handle) noexcept {
  delete handle;
}

// Of a struct that the host wants filled.
template <typename T>
void expect_whole(const T* out, const char* what) {
  if (out == nullptr || out->struct_size < sizeof(T)) {
    raise(
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected a whole %s of %zu bytes, got %u",
        what,
        sizeof(T),
        out == nullptr ? 0u : out->struct_size);
  }
}

// The bytes of one side of a region are in its buffer; of host memory only the sizes are checked.
inline bool side_fits(
    const pavo_copy_region& region,
    const pavo_buffer* buffer,
    const void* host_memory,
    int64_t offset,
    int64_t pitch) {
  int64_t end = 0;
  if (region.rows < 0 || region.row_bytes < 0 || offset < 0 ||
      (region.rows > 1 && pitch < region.row_bytes) ||
      __builtin_mul_overflow(region.rows > 0 ? region.rows - 1 : 0, pitch, &end) ||
      __builtin_add_overflow(end, region.row_bytes, &end) ||
      __builtin_add_overflow(end, offset, &end)) {
    return false;
  }
  return region.rows == 0 ||
         (buffer != nullptr ? end <= buffer->self->size_bytes() : host_memory != nullptr);
}

inline void check_regions(const pavo_copy_region* regions, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const pavo_copy_region& r = regions[i];
    if (!side_fits(r, r.src, r.src_host, r.src_offset, r.src_pitch) ||
        !side_fits(r, r.dst, r.dst_host, r.dst_offset, r.dst_pitch)) {
      raise(PAVO_ERROR_INVALID_ARGUMENT, "region %u leaves its buffer, or has impossible sizes", i);
    }
  }
}

inline void check_weight(const pavo_tensor& tensor) {
  if (tensor.role != PAVO_ROLE_WEIGHT || extent_bytes(tensor) < 0) {
    raise(
        PAVO_ERROR_INVALID_ARGUMENT,
        "%.*s: expected a weight whose sizes make sense",
        static_cast<int>(tensor.name.size),
        tensor.name.data);
  }
}

// Rows of the flattened [shape[0] * ..., last].
inline int64_t row_count(const pavo_tensor& tensor) {
  int64_t rows = 1;
  for (int32_t i = 0; i + 1 < tensor.rank; ++i) {
    rows *= tensor.shape[i];
  }
  return rows;
}

}  // namespace pavo::sdk
