#include "tests/fakes/mock/queue.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "pavo/plugin_helpers.h"

namespace pavo::mock {

bool Timeline::promise(uint64_t value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const bool rises = value > promised_;
  promised_ = rises ? value : promised_;
  return rises;
}

uint64_t Timeline::promised() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return promised_;
}

void Timeline::signal(uint64_t value, const pavo_error* failure) {
  const std::lock_guard<std::mutex> lock(mutex_);
  value_ = std::max(value_, value);
  if (failure != nullptr) {
    failures_.push_back({value, *failure});
  }
  // Under the lock: who is woken may destroy the timeline.
  raised_.notify_all();
}

void Timeline::wait_silently(uint64_t value) {
  std::unique_lock<std::mutex> lock(mutex_);
  raised_.wait(lock, [&] { return value_ >= value; });
}

int32_t Timeline::wait(uint64_t value, int64_t timeout_ns, pavo_error* error) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto reached = [&] { return value_ >= value; };
  if (timeout_ns < 0) {
    raised_.wait(lock, reached);
  } else if (!raised_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), reached)) {
    return sdk::fail(
        error,
        PAVO_ERROR_TIMEOUT,
        "the timeline is at %" PRIu64 " after %" PRId64 " ns, expected %" PRIu64,
        value_,
        timeout_ns,
        value);
  }
  const auto failure = std::find_if(
      failures_.begin(), failures_.end(), [&](const Failure& f) { return f.value <= value; });
  if (failure == failures_.end()) {
    return PAVO_OK;
  }
  const pavo_error found = failure->error;
  failures_.erase(failure);
  if (error != nullptr && error->struct_size >= sizeof(pavo_error)) {
    *error = found;
  }
  return found.code;
}

Queue::Queue(std::chrono::microseconds latency) : latency_(latency), thread_([this] { loop(); }) {}

Queue::~Queue() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ending_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void Queue::push(Work work) {
  const std::lock_guard<std::mutex> lock(mutex_);
  items_.push_back(std::move(work));
  changed_.notify_all();
}

void Queue::drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [&] { return items_.empty() && !busy_; });
}

void Queue::loop() {
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !items_.empty() || ending_; });
    if (items_.empty()) {
      return;
    }
    const Work work = std::move(items_.front());
    items_.pop_front();
    busy_ = true;
    lock.unlock();
    for (const pavo_fence& fence : work.waits) {
      Timeline::of(fence.timeline)->wait_silently(fence.value);
    }
    std::this_thread::sleep_for(latency_);
    pavo_error failure = {};
    failure.struct_size = sizeof failure;
    const int32_t code = work.run(&failure);
    for (size_t i = 0; i < work.signals.size(); ++i) {
      // The first one carries the failure, so that it is reported once.
      const bool carries = code != PAVO_OK && i == 0;
      Timeline::of(work.signals[i].timeline)
          ->signal(work.signals[i].value, carries ? &failure : nullptr);
    }
    lock.lock();
    busy_ = false;
    changed_.notify_all();
  }
}

}  // namespace pavo::mock
