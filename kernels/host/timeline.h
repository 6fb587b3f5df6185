// Timelines: counters that queued work raises and that anyone may wait for.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>

#include "pavo/plugin.h"

#include "kernels/host/event.h"

struct pavo_timeline {
 public:
  explicit pavo_timeline(pavo_device* owner) : device_(owner) {}

  const pavo_device* device() const { return device_; }

  // [any] The highest value that queued work has promised.
  uint64_t promised() const;

  // [device] The event after which `value` is reached; NULL if it is reached already. The value
  // must be promised.
  pavo::cuda::Event event_for(uint64_t value);

  // [device] Promises `value`, reached with the event (NULL: reached now). A failure of that work
  // is kept for the first wait that reaches the value. Values must rise.
  void signal(uint64_t value, pavo::cuda::Event event, const pavo_error* failure);

  // [any] As timeline_wait of the ABI.
  int32_t wait(uint64_t value, int64_t timeout_ns, pavo_error* error);

 private:
  using Clock = std::chrono::steady_clock;
  struct Step {
    uint64_t value;
    pavo::cuda::Event event;
    std::optional<pavo_error> failure;
  };

  // With the mutex: drops the steps up to `value`, keeping their failures.
  void reach(uint64_t value);
  bool take_failure(uint64_t value, pavo_error* error);
  int32_t wait_for_event(
      const pavo::cuda::Event& event,
      std::optional<Clock::time_point> deadline,
      pavo_error* error) const;

  pavo_device* const device_;
  mutable std::mutex mutex_;
  std::condition_variable promised_more_;
  uint64_t promised_ = 0;
  uint64_t reached_ = 0;
  std::deque<Step> steps_;     // not known to be reached, values rise
  std::deque<Step> failures_;  // reached, not yet reported
};

namespace pavo::cuda {

// The fences of one submission.
struct Fences {
  const pavo_fence* waits;
  uint32_t wait_count;
  const pavo_fence* signals;
  uint32_t signal_count;

  // PAVO_ERROR_INVALID_ARGUMENT for a NULL array, a timeline of another device, a wait for a value
  // that no queued work promises (it would block the queue for ever), a signal that does not rise.
  int32_t check(const pavo_device* device, pavo_error* error) const;
  // Makes the stream wait.
  int32_t wait_in(cudaStream_t stream, pavo_error* error) const;
  // Makes the calling thread wait.
  int32_t wait_here(pavo_error* error) const;
  // Signals when the stream's work so far is done. With a failure of that work, and at least one
  // signal, the failure is reported through the timelines and PAVO_OK returned; without a signal it
  // is returned.
  int32_t signal_from(
      pavo_device* device, cudaStream_t stream, const pavo_error* failure, pavo_error* error) const;
};

}  // namespace pavo::cuda
