#include "kernels/host/timeline.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <thread>

#include "pavo/plugin_helpers.h"

#include "kernels/host/device.h"
#include "kernels/host/error.h"

namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;

// A step of a small model takes about a millisecond, so looking a few more times before the first
// sleep, whose end the system may delay by 50 us, is worth it.
constexpr nanoseconds kSpin = microseconds(50);
// Then sleeps of a share of what was waited already: at most 3 % late, and no core is burnt.
constexpr int kSleepShare = 32;
constexpr nanoseconds kShortestSleep = microseconds(20);
constexpr nanoseconds kLongestSleep = microseconds(500);

}  // namespace

uint64_t pavo_timeline::promised() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return promised_;
}

pavo::cuda::Event pavo_timeline::event_for(uint64_t value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const Step& step : steps_) {
    if (step.value >= value) {
      return step.event;
    }
  }
  return nullptr;
}

void pavo_timeline::signal(uint64_t value, pavo::cuda::Event event, const pavo_error* failure) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    // Finished steps are dropped here too, or a timeline that nobody waits for would grow.
    while (!steps_.empty() && (steps_.front().event == nullptr ||
                               cudaEventQuery(steps_.front().event.get()) == cudaSuccess)) {
      reach(steps_.front().value);
    }
    if (value <= promised_) {  // the same timeline twice in one list
      return;
    }
    promised_ = value;
    Step step = {value, std::move(event), std::nullopt};
    if (failure != nullptr) {
      step.failure = *failure;
    }
    steps_.push_back(std::move(step));
  }
  promised_more_.notify_all();
}

void pavo_timeline::reach(uint64_t value) {
  while (!steps_.empty() && steps_.front().value <= value) {
    reached_ = steps_.front().value;
    if (steps_.front().failure.has_value()) {
      failures_.push_back(std::move(steps_.front()));
      failures_.back().event = nullptr;
    }
    steps_.pop_front();
  }
}

bool pavo_timeline::take_failure(uint64_t value, pavo_error* error) {
  if (failures_.empty() || failures_.front().value > value) {
    return false;
  }
  const pavo_error& failure = *failures_.front().failure;
  const uint32_t size = error->struct_size;
  *error = failure;
  error->struct_size = size;
  failures_.pop_front();
  return true;
}

int32_t pavo_timeline::wait_for_event(
    const pavo::cuda::Event& event,
    std::optional<Clock::time_point> deadline,
    pavo_error* error) const {
  const Clock::time_point start = Clock::now();
  while (event != nullptr) {
    const cudaError_t code = cudaEventQuery(event.get());
    if (code == cudaSuccess) {
      break;
    }
    if (code != cudaErrorNotReady) {
      return device_->note(pavo::cuda::fail_cuda(error, code, "queued work", nullptr), *error);
    }
    const Clock::time_point now = Clock::now();
    if (deadline.has_value() && now >= *deadline) {
      return PAVO_ERROR_TIMEOUT;
    }
    const nanoseconds waited = now - start;
    if (waited < kSpin) {
      std::this_thread::yield();
      continue;
    }
    nanoseconds sleep = std::clamp(waited / kSleepShare, kShortestSleep, kLongestSleep);
    if (deadline.has_value()) {
      sleep = std::min<nanoseconds>(sleep, *deadline - now);
    }
    std::this_thread::sleep_for(sleep);
  }
  return PAVO_OK;
}

int32_t pavo_timeline::wait(uint64_t value, int64_t timeout_ns, pavo_error* error) {
  std::optional<Clock::time_point> deadline;
  // A century is for ever, and the sum does not overflow.
  if (timeout_ns >= 0 && timeout_ns < INT64_C(3000000000000000000)) {
    deadline = Clock::now() + nanoseconds(timeout_ns);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  int32_t code = PAVO_OK;
  while (code == PAVO_OK && reached_ < value) {
    const auto step =
        std::find_if(steps_.begin(), steps_.end(), [&](const Step& s) { return s.value >= value; });
    if (step != steps_.end()) {
      const pavo::cuda::Event event = step->event;
      const uint64_t step_value = step->value;
      lock.unlock();
      code = wait_for_event(event, deadline, error);
      lock.lock();
      if (code == PAVO_OK) {
        reach(step_value);
      }
    } else if (!deadline.has_value()) {
      promised_more_.wait(lock);
    } else if (
        promised_more_.wait_until(lock, *deadline) == std::cv_status::timeout &&
        promised_ < value) {
      code = PAVO_ERROR_TIMEOUT;
    }
  }
  if (code == PAVO_ERROR_TIMEOUT) {
    return pavo::sdk::fail(
        error,
        PAVO_ERROR_TIMEOUT,
        "expected the timeline to reach %" PRIu64 " within %" PRId64 " ns; it is at %" PRIu64
        ", queued work promises %" PRIu64,
        value,
        timeout_ns,
        reached_,
        promised_);
  }
  if (code != PAVO_OK) {
    return code;
  }
  return take_failure(value, error) ? error->code : PAVO_OK;
}

namespace pavo::cuda {
namespace {

int32_t check_fence(
    const pavo_device* device, const pavo_fence& fence, const char* what, pavo_error* error) {
  if (fence.timeline == nullptr || fence.timeline->device() != device) {
    return sdk::fail(
        error, PAVO_ERROR_INVALID_ARGUMENT, "%s: expected a timeline of this device", what);
  }
  return PAVO_OK;
}

}  // namespace

int32_t Fences::check(const pavo_device* device, pavo_error* error) const {
  if ((wait_count != 0 && waits == nullptr) || (signal_count != 0 && signals == nullptr)) {
    return sdk::fail(error, PAVO_ERROR_INVALID_ARGUMENT, "fences: expected an array, got NULL");
  }
  for (uint32_t i = 0; i < wait_count; ++i) {
    PAVO_TRY(check_fence(device, waits[i], "wait", error));
    if (const uint64_t promised = waits[i].timeline->promised(); waits[i].value > promised) {
      return sdk::fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "wait: expected a value that queued work promises (at most %" PRIu64 "), got %" PRIu64,
          promised,
          waits[i].value);
    }
  }
  for (uint32_t i = 0; i < signal_count; ++i) {
    PAVO_TRY(check_fence(device, signals[i], "signal", error));
    if (const uint64_t promised = signals[i].timeline->promised(); signals[i].value <= promised) {
      return sdk::fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "signal: expected a value above the timeline's last one, %" PRIu64 ", got %" PRIu64,
          promised,
          signals[i].value);
    }
  }
  return PAVO_OK;
}

int32_t Fences::wait_in(cudaStream_t stream, pavo_error* error) const {
  for (uint32_t i = 0; i < wait_count; ++i) {
    if (const Event event = waits[i].timeline->event_for(waits[i].value); event != nullptr) {
      PAVO_CUDA_TRY(cudaStreamWaitEvent(stream, event.get(), 0));
    }
  }
  return PAVO_OK;
}

int32_t Fences::wait_here(pavo_error* error) const {
  for (uint32_t i = 0; i < wait_count; ++i) {
    if (const Event event = waits[i].timeline->event_for(waits[i].value); event != nullptr) {
      PAVO_CUDA_TRY(cudaEventSynchronize(event.get()));
    }
  }
  return PAVO_OK;
}

int32_t Fences::signal_from(
    pavo_device* device, cudaStream_t stream, const pavo_error* failure, pavo_error* error) const {
  pavo_error first = {};
  if (failure != nullptr) {
    first = *failure;
  }
  Event event;
  if (signal_count != 0) {
    pavo_error record_error = {};
    record_error.struct_size = sizeof record_error;
    if (device->events().record(stream, &event, &record_error) != PAVO_OK) {
      device->note(record_error.code, record_error);
      first = failure != nullptr ? *failure : record_error;
      failure = &first;
    }
  }
  for (uint32_t i = 0; i < signal_count; ++i) {
    signals[i].timeline->signal(signals[i].value, event, failure);
  }
  if (failure == nullptr || signal_count != 0) {
    return PAVO_OK;
  }
  const uint32_t size = error->struct_size;
  *error = first;
  error->struct_size = size;
  return first.code;
}

}  // namespace pavo::cuda
