#include "plugins/cpu/device.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <memory>

#include "pavo/plugin_helpers.h"

namespace {

constexpr uint64_t kBufferAlignment = 64;  // a cache line, and the widest vector

}  // namespace

pavo_device::pavo_device(const pavo_host_api& host, const pavo::cpu::Options& options)
    : pool_(options.threads), host_(host), options_(options) {
  if (pool_.running_threads() < pool_.threads()) {
    log(PAVO_LOG_WARN,
        "cpu: the system gave only %d of %d threads; it will be slower",
        pool_.running_threads(),
        pool_.threads());
  }
}

pavo_device::~pavo_device() {
  const int32_t left = buffers_.load();
  if (left != 0) {
    log(PAVO_LOG_ERROR, "cpu: device closed while %d buffers were alive", left);
  }
}

void pavo_device::log(int32_t level, const char* format, ...) {
  char text[96];
  va_list args;
  va_start(args, format);
  const int size = std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  const auto most = static_cast<int>(sizeof text) - 1;
  host_.log(host_.context, level, text, static_cast<uint64_t>(std::clamp(size, 0, most)));
}

int32_t pavo_device::buffer_create(int64_t size_bytes, pavo_buffer** out, pavo_error* error) {
  if (size_bytes < 0) {
    return pavo::sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected a buffer size of at least 0, got %" PRId64,
        size_bytes);
  }
  auto buffer = std::make_unique<pavo_buffer>(pavo_buffer{this, nullptr, size_bytes, false});
  if (size_bytes != 0) {
    buffer->data = static_cast<std::byte*>(
        host_.alloc(host_.context, static_cast<uint64_t>(size_bytes), kBufferAlignment));
    if (buffer->data == nullptr) {
      return pavo::sdk::fail(
          error,
          PAVO_ERROR_OUT_OF_MEMORY,
          "no %" PRId64 " bytes of host memory; use a smaller context or model",
          size_bytes);
    }
  }
  used_bytes_ += size_bytes;
  ++buffers_;
  *out = buffer.release();
  return PAVO_OK;
}

int32_t pavo_device::buffer_import(
    const void* memory, int64_t size_bytes, pavo_buffer** out, pavo_error* error) {
  if (size_bytes < 0 || (memory == nullptr && size_bytes != 0)) {
    return pavo::sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected memory and a size of at least 0, got %p and %" PRId64,
        memory,
        size_bytes);
  }
  auto* data = const_cast<std::byte*>(static_cast<const std::byte*>(memory));
  *out = new pavo_buffer{this, data, size_bytes, true};
  ++buffers_;
  return PAVO_OK;
}

void pavo_device::buffer_destroy(pavo_buffer* buffer) {
  if (!buffer->imported) {
    used_bytes_ -= buffer->size_bytes;
    if (buffer->data != nullptr) {
      host_.free(host_.context, buffer->data, static_cast<uint64_t>(buffer->size_bytes));
    }
  }
  --buffers_;
  delete buffer;
}

namespace pavo::cpu {
namespace {

// One side of a copy: its first byte, checked against its buffer.
struct Side {
  pavo_buffer* buffer;
  const void* host;
  int64_t offset;
  int64_t pitch;
  const char* name;
};

// Bytes from the offset to the end of the last row; -1 on overflow.
int64_t side_extent(const pavo_copy_region& region, int64_t pitch) {
  int64_t bytes = 0;
  if (__builtin_mul_overflow(region.rows - 1, pitch, &bytes) ||
      __builtin_add_overflow(bytes, region.row_bytes, &bytes)) {
    return -1;
  }
  return bytes;
}

int32_t check_side(
    const pavo_device* device,
    const pavo_copy_region& region,
    const Side& side,
    pavo_error* error) {
  const int64_t extent = side_extent(region, side.pitch);
  if (extent < 0 || side.offset < 0 || (region.rows > 1 && side.pitch < region.row_bytes)) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "copy: expected a %s offset of at least 0 and a pitch of at least %" PRId64
        " bytes, got %" PRId64 " and %" PRId64,
        side.name,
        region.row_bytes,
        side.offset,
        side.pitch);
  }
  if (side.buffer != nullptr) {
    return check_range(device, {side.buffer, side.offset}, extent, side.name, error);
  }
  return side.host != nullptr ? PAVO_OK
                              : sdk::fail(
                                    error,
                                    PAVO_ERROR_INVALID_ARGUMENT,
                                    "copy: the %s has neither buffer nor host memory",
                                    side.name);
}

bool is_empty(const pavo_copy_region& region) {
  return region.rows == 0 || region.row_bytes == 0;
}

int32_t check_region(const pavo_device* device, const pavo_copy_region& region, pavo_error* error) {
  if (region.rows < 0 || region.row_bytes < 0) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "copy: expected at least 0 rows and bytes, got %" PRId64 " and %" PRId64,
        region.rows,
        region.row_bytes);
  }
  if (is_empty(region)) {
    return PAVO_OK;
  }
  const Side source = {region.src, region.src_host, region.src_offset, region.src_pitch, "source"};
  const Side target = {
      region.dst, region.dst_host, region.dst_offset, region.dst_pitch, "destination"};
  int32_t code = check_side(device, region, source, error);
  if (code == PAVO_OK) {
    code = check_side(device, region, target, error);
  }
  if (code == PAVO_OK && region.dst != nullptr && region.dst->imported) {
    code = sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "copy: the destination is imported memory, which is read only");
  }
  return code;
}

void copy_region(const pavo_copy_region& region) {
  const std::byte* source =
      (region.src != nullptr ? region.src->data : static_cast<const std::byte*>(region.src_host)) +
      region.src_offset;
  std::byte* target =
      (region.dst != nullptr ? region.dst->data : static_cast<std::byte*>(region.dst_host)) +
      region.dst_offset;
  const auto row_bytes = static_cast<size_t>(region.row_bytes);
  if (region.src_pitch == region.row_bytes && region.dst_pitch == region.row_bytes) {
    std::memcpy(target, source, row_bytes * static_cast<size_t>(region.rows));
    return;
  }
  for (int64_t row = 0; row < region.rows; ++row) {
    std::memcpy(target + row * region.dst_pitch, source + row * region.src_pitch, row_bytes);
  }
}

}  // namespace

int32_t check_range(
    const pavo_device* device,
    const pavo_binding& binding,
    int64_t size_bytes,
    const char* what,
    pavo_error* error) {
  if (binding.buffer == nullptr || binding.buffer->device != device) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "%s: expected a buffer of this device, got %s",
        what,
        binding.buffer == nullptr ? "NULL" : "one of another device");
  }
  const int64_t size = binding.buffer->size_bytes;
  if (binding.offset < 0 || binding.offset > size || size - binding.offset < size_bytes) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "%s: %" PRId64 " bytes at offset %" PRId64 " do not lie in a buffer of %" PRId64 " bytes",
        what,
        size_bytes,
        binding.offset,
        size);
  }
  return PAVO_OK;
}

int32_t copy_regions(
    pavo_device* device, const pavo_copy_region* regions, uint32_t count, pavo_error* error) {
  if (count != 0 && regions == nullptr) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "copy: expected an array of %u regions, got NULL",
        count);
  }
  for (uint32_t i = 0; i < count; ++i) {
    const int32_t code = check_region(device, regions[i], error);
    if (code != PAVO_OK) {
      return code;
    }
  }
  for (uint32_t i = 0; i < count; ++i) {
    if (!is_empty(regions[i])) {
      copy_region(regions[i]);
    }
  }
  return PAVO_OK;
}

}  // namespace pavo::cpu
