// A buffer of a device and a queue of copies, for the checks that need a device.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/conformance/kit.h"
#include "tests/ops/backend.h"

namespace pavo::conformance {

using test::Backend;
using test::require_ok;

inline constexpr int64_t kTimeoutNs = 20'000'000'000;

// Goes with its scope, as Queue.
class Memory {
 public:
  Memory(const Backend& backend, int64_t size) : backend_(backend), size_(size) {
    pavo_error error = test::empty_error();
    require_ok(
        backend.api().buffer_create(backend.device(), size, PAVO_MEMORY_DEVICE, &buffer_, &error),
        error,
        "buffer_create");
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { backend_.api().buffer_destroy(buffer_); }
  pavo_buffer* get() const { return buffer_; }
  int64_t size() const { return size_; }

 private:
  const Backend& backend_;
  int64_t size_;
  pavo_buffer* buffer_ = nullptr;
};

class Queue {
 public:
  explicit Queue(const Backend& backend) : backend_(backend) {
    pavo_error error = test::empty_error();
    require_ok(
        backend.api().timeline_create(backend.device(), &timeline_, &error),
        error,
        "timeline_create");
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue() { backend_.api().timeline_destroy(timeline_); }

  // Code of the call; the timeline is raised only if it is PAVO_OK.
  int32_t copy(const std::vector<pavo_copy_region>& regions, pavo_error* error) {
    const pavo_fence wait = {timeline_, value_};
    const pavo_fence signal = {timeline_, value_ + 1};
    const int32_t code = backend_.api().copy(
        backend_.device(),
        regions.data(),
        static_cast<uint32_t>(regions.size()),
        &wait,
        1,
        &signal,
        1,
        error);
    value_ += code == PAVO_OK ? 1 : 0;
    return code;
  }
  void must_copy(const pavo_copy_region& region) {
    pavo_error error = test::empty_error();
    require_ok(copy({region}, &error), error, "copy");
    require_ok(wait(value_, kTimeoutNs, &error), error, "timeline_wait");
  }
  int32_t wait(uint64_t value, int64_t timeout_ns, pavo_error* error) {
    return backend_.api().timeline_wait(timeline_, value, timeout_ns, error);
  }
  uint64_t value() const { return value_; }

  void upload(const std::vector<std::byte>& bytes, const Memory& memory) {
    pavo_copy_region region{};
    region.src_host = bytes.data();
    region.dst = memory.get();
    region.rows = 1;
    region.row_bytes = static_cast<int64_t>(bytes.size());
    must_copy(region);
  }
  std::vector<std::byte> download(const Memory& memory) {
    std::vector<std::byte> bytes(static_cast<size_t>(memory.size()));
    pavo_copy_region region{};
    region.src = memory.get();
    region.dst_host = bytes.data();
    region.rows = 1;
    region.row_bytes = memory.size();
    must_copy(region);
    return bytes;
  }

 private:
  const Backend& backend_;
  pavo_timeline* timeline_ = nullptr;
  uint64_t value_ = 0;
};

// A check whose body needs a device; skipped where there is none.
Check on_device(const char* id, const char* rule, void (*body)(Context& context));

}  // namespace pavo::conformance
