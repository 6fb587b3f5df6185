#include "plugins/cpu/timeline.h"

#include <chrono>
#include <cinttypes>
#include <cstring>

#include "pavo/plugin_helpers.h"

namespace {

// Copies what both sides know; the caller's struct_size stays.
int32_t copy_error(const pavo_error& source, pavo_error* target) {
  if (target != nullptr && target->struct_size >= sizeof(pavo_error)) {
    const uint32_t size = target->struct_size;
    *target = source;
    target->struct_size = size;
  }
  return source.code;
}

}  // namespace

uint64_t pavo_timeline::value() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return value_;
}

void pavo_timeline::signal(uint64_t value, const pavo_error* failure) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    value_ = value;
    if (failure != nullptr) {
      failures_.push_back({value, *failure});
    }
  }
  raised_.notify_all();
}

int32_t pavo_timeline::wait(uint64_t value, int64_t timeout_ns, pavo_error* error) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto reached = [&] { return value_ >= value; };
  if (timeout_ns < 0) {
    raised_.wait(lock, reached);
  } else if (!raised_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), reached)) {
    return pavo::sdk::fail(
        error,
        PAVO_ERROR_TIMEOUT,
        "the timeline is at %" PRIu64 " after %" PRId64 " ns, expected %" PRIu64,
        value_,
        timeout_ns,
        value);
  }
  if (failures_.empty() || failures_.front().value > value) {
    return PAVO_OK;
  }
  const pavo_error failure = failures_.front().error;
  failures_.erase(failures_.begin());
  return copy_error(failure, error);
}

namespace pavo::cpu {

int32_t Fences::check(const pavo_device* device, pavo_error* error) const {
  if ((wait_count != 0 && waits == nullptr) || (signal_count != 0 && signals == nullptr)) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected arrays of %u waits and %u signals, got NULL",
        wait_count,
        signal_count);
  }
  for (uint32_t i = 0; i < wait_count + signal_count; ++i) {
    const bool is_wait = i < wait_count;
    const pavo_fence& fence = is_wait ? waits[i] : signals[i - wait_count];
    const char* kind = is_wait ? "wait" : "signal";
    if (fence.timeline == nullptr || fence.timeline->device() != device) {
      return sdk::fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "expected the %ss to be on timelines of this device",
          kind);
    }
    const uint64_t now = fence.timeline->value();
    if (is_wait ? fence.value > now : fence.value <= now) {
      return sdk::fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "%s for %" PRIu64 " of a timeline that is at %" PRIu64 "%s",
          kind,
          fence.value,
          now,
          is_wait ? ", which no queued work will raise" : ": expected a higher value");
    }
  }
  return PAVO_OK;
}

int32_t Fences::finish(const pavo_error* failure, pavo_error* error) const {
  for (uint32_t i = 0; i < signal_count; ++i) {
    // The first signal carries the failure, so that it is reported once.
    signals[i].timeline->signal(signals[i].value, i == 0 ? failure : nullptr);
  }
  return failure != nullptr && signal_count == 0 ? copy_error(*failure, error) : PAVO_OK;
}

}  // namespace pavo::cpu
