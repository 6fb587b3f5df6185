#include "tests/fakes/mock/device.h"

#include <chrono>
#include <cinttypes>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <set>
#include <thread>
#include <utility>

#include "pavo/plugin_helpers.h"

#include "tests/fakes/mock/breaks.h"
#include "tests/fakes/mock/pages.h"

namespace pavo::mock {

namespace {

using sdk::fail;

constexpr uint64_t kHostBytes = 64;

// Lets the work at hand, and nobody else, reach some buffers.
class OpenPages {
 public:
  void add(pavo_buffer* handle) {
    Buffer* buffer = Buffer::of(handle);
    if (buffer != nullptr && buffer->pages != nullptr && opened_.insert(buffer->pages).second) {
      Pages::instance().open(buffer->pages);
    }
  }
  OpenPages() = default;
  OpenPages(const OpenPages&) = delete;
  OpenPages& operator=(const OpenPages&) = delete;
  ~OpenPages() {
    for (const void* pages : opened_) {
      Pages::instance().close(pages);
    }
  }

 private:
  std::set<const void*> opened_;
};

pavo_buffer* inner_of(pavo_buffer* handle) {
  return handle == nullptr ? nullptr : Buffer::of(handle)->inner;
}

// One side of a region, before anything is queued.
int32_t check_side(
    const Device* device,
    const pavo_copy_region& region,
    pavo_buffer* handle,
    const void* host,
    int64_t offset,
    int64_t pitch,
    pavo_error* error) {
  const bool shape = region.rows >= 0 && region.row_bytes >= 0 && offset >= 0 &&
                     (region.rows < 2 || pitch >= region.row_bytes);
  int64_t end = 0;
  if (!shape || __builtin_mul_overflow(region.rows - (region.rows > 0 ? 1 : 0), pitch, &end) ||
      __builtin_add_overflow(end, region.row_bytes, &end) ||
      __builtin_add_overflow(end, offset, &end)) {
    return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "copy: the region has impossible sizes");
  }
  if (region.rows == 0 || region.row_bytes == 0) {
    return PAVO_OK;
  }
  if (handle == nullptr) {
    return host != nullptr ? PAVO_OK
                           : fail(error, PAVO_ERROR_INVALID_ARGUMENT, "copy: a side is NULL");
  }
  const Buffer* buffer = Buffer::of(handle);
  if (buffer->device != device || end > buffer->size) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "copy: expected a range in a buffer of this device, got the end %" PRId64 " of %" PRId64,
        end,
        buffer->size);
  }
  return PAVO_OK;
}

}  // namespace

Device::Device(Instance* instance, pavo_device* inner) : instance_(instance), inner_(inner) {
  const std::chrono::microseconds latency(instance->options.latency_us);
  runs_ = std::make_unique<Queue>(latency);
  if (instance->options.one_queue == 0) {
    copies_ = std::make_unique<Queue>(latency);
  }
  if (breaks("leak_thread")) {
    std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
  } else if (breaks("ignore_no_memory")) {
    host_memory_ = host_api->alloc(host_api->context, kHostBytes, alignof(std::max_align_t));
    std::memset(host_memory_, 0, kHostBytes);
  }
}

Device::~Device() {
  drain();
  copies_.reset();
  runs_.reset();
  inner_api->device_close(inner_);
  if (host_memory_ != nullptr) {
    host_api->free(host_api->context, host_memory_, kHostBytes);
  }
}

void Device::drain() {
  if (copies_ != nullptr) {
    copies_->drain();
  }
  runs_->drain();
}

int32_t Device::create_buffer(int64_t size, int32_t kind, Buffer** out, pavo_error* error) {
  const int64_t total = instance_->options.memory_bytes;
  if (breaks("take_any_size")) {
    size = size < 0 ? 0 : size;
  } else if (breaks("abort_on_size") && size > total) {
    std::abort();
  }
  if (kind == PAVO_MEMORY_DEVICE && size > total - used_) {
    return fail(
        error,
        PAVO_ERROR_OUT_OF_MEMORY,
        "no %" PRId64 " bytes of device memory, %" PRId64 " of %" PRId64 " are in use",
        size,
        used_.load(),
        total);
  }
  auto buffer = std::make_unique<Buffer>();
  buffer->device = this;
  buffer->size = size;
  buffer->visible = kind == PAVO_MEMORY_HOST;
  std::unique_ptr<VisibleScope> visible;
  if (buffer->visible) {
    visible = std::make_unique<VisibleScope>();
  }
  const int32_t code = inner_api->buffer_create(inner_, size, kind, &buffer->inner, error);
  if (code != PAVO_OK) {
    return code;
  }
  buffer->pages = inner_api->buffer_host(buffer->inner);
  used_ += buffer->visible ? 0 : size;
  *out = buffer.release();
  return PAVO_OK;
}

void Device::destroy_buffer(Buffer* buffer) {
  used_ -= buffer->visible ? 0 : buffer->size;
  inner_api->buffer_destroy(buffer->inner);
  delete buffer;
}

int32_t Device::check_fences(
    const std::vector<pavo_fence>& waits,
    const std::vector<pavo_fence>& signals,
    pavo_error* error) const {
  for (const pavo_fence& fence : waits) {
    const Timeline* timeline = Timeline::of(fence.timeline);
    if (timeline == nullptr || timeline->device() != this || timeline->promised() < fence.value) {
      return fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "wait for %" PRIu64 ": expected a value that queued work of this device will raise",
          fence.value);
    }
  }
  for (const pavo_fence& fence : signals) {
    Timeline* timeline = Timeline::of(fence.timeline);
    if (timeline == nullptr || timeline->device() != this || !timeline->promise(fence.value)) {
      return fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "signal of %" PRIu64 ": expected a timeline of this device and a value that rises",
          fence.value);
    }
  }
  return PAVO_OK;
}

int32_t Device::run(
    FaultKind late, const std::function<int32_t(pavo_error*)>& body, pavo_error* error) {
  switch (late) {
    case FaultKind::kFail:
      return fail(error, PAVO_ERROR_NODE_FAILED, "the mock was told that queued work fails");
    case FaultKind::kLost:
      lost_ = true;
      break;
    case FaultKind::kCrashLate:
      __builtin_trap();
    case FaultKind::kHangLate:
      for (;;) {
        std::this_thread::sleep_for(std::chrono::hours(1));
      }
    default:
      break;
  }
  if (lost_) {
    return fail(error, PAVO_ERROR_DEVICE_LOST, "the mock was told to lose its device");
  }
  return sdk::guard(error, [&] { return body(error); });
}

int32_t Device::copy(
    const pavo_copy_region* regions,
    uint32_t count,
    const std::vector<pavo_fence>& waits,
    const std::vector<pavo_fence>& signals,
    FaultKind late,
    pavo_error* error) {
  if (breaks("copy_before_check") && count > 1) {
    static_cast<void>(copy(regions, 1, {}, {}, FaultKind::kNone, error));
    drain();
  }
  for (const pavo_copy_region* r = regions; r != regions + count; ++r) {
    int32_t code = check_side(this, *r, r->src, r->src_host, r->src_offset, r->src_pitch, error);
    if (code == PAVO_OK) {
      code = check_side(this, *r, r->dst, r->dst_host, r->dst_offset, r->dst_pitch, error);
    }
    if (code != PAVO_OK && breaks("take_any_copy")) {
      return copy(nullptr, 0, waits, signals, late, error);
    }
    if (code != PAVO_OK) {
      return code;
    }
  }
  const int32_t code = check_fences(waits, signals, error);
  if (code != PAVO_OK) {
    return code;
  }
  std::vector<pavo_copy_region> copied(regions, regions + count);
  if (breaks("ignore_pitch")) {
    for (pavo_copy_region& region : copied) {
      region.dst_pitch = region.row_bytes;
    }
  }
  const auto body = [this, copied](pavo_error* failure) {
    OpenPages pages;
    std::vector<pavo_copy_region> inner = copied;
    for (pavo_copy_region& region : inner) {
      pages.add(region.src);
      pages.add(region.dst);
      region.src = inner_of(region.src);
      region.dst = inner_of(region.dst);
    }
    return inner_api->copy(
        inner_, inner.data(), static_cast<uint32_t>(inner.size()), nullptr, 0, nullptr, 0, failure);
  };
  Queue& queue = copies_ != nullptr ? *copies_ : *runs_;
  queue.push({waits, signals, [this, late, body](pavo_error* failure) {
                return run(late, body, failure);
              }});
  return PAVO_OK;
}

int32_t Device::submit(Plan* plan, const pavo_submit& submit, FaultKind late, pavo_error* error) {
  const std::vector<pavo_fence> waits(submit.waits, submit.waits + submit.wait_count);
  const std::vector<pavo_fence> signals(submit.signals, submit.signals + submit.signal_count);
  if (submit.binding_count != plan->graph.tensors.size()) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected %zu bindings, got %u",
        plan->graph.tensors.size(),
        submit.binding_count);
  }
  const int32_t code = check_fences(waits, signals, error);
  if (code != PAVO_OK) {
    return code;
  }
  const std::vector<pavo_binding> bindings(submit.bindings, submit.bindings + submit.binding_count);
  const pavo_binding workspace = submit.workspace;
  const auto body = [plan, bindings, workspace](pavo_error* failure) {
    OpenPages pages;
    std::vector<pavo_binding> inner = bindings;
    for (pavo_binding& binding : inner) {
      pages.add(binding.buffer);
      binding.buffer = inner_of(binding.buffer);
    }
    pages.add(workspace.buffer);
    pavo_submit run = {};
    run.struct_size = sizeof run;
    run.binding_count = static_cast<uint32_t>(inner.size());
    run.bindings = inner.data();
    run.workspace = {inner_of(workspace.buffer), workspace.offset};
    BrokenRun broken(*plan, inner.data(), run.workspace);
    broken.before();
    const int32_t done = inner_api->submit(plan->inner, &run, failure);
    broken.after();
    return done;
  };
  runs_->push({waits, signals, [this, late, body](pavo_error* failure) {
                 return run(late, body, failure);
               }});
  return PAVO_OK;
}

}  // namespace pavo::mock
