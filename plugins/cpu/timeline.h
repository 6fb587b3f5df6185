// Timelines: counters that finished work raises and that anyone may wait for.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <vector>

#include "pavo/plugin.h"

struct pavo_device;

// All members but the constructor: [any].
struct pavo_timeline {
 public:
  explicit pavo_timeline(pavo_device* owner) : device_(owner) {}

  const pavo_device* device() const { return device_; }
  uint64_t value() const;

  // Raises the value; `failure` (NULL: none) is kept for the next wait that reaches it.
  void signal(uint64_t value, const pavo_error* failure);

  // As timeline_wait of the ABI.
  int32_t wait(uint64_t value, int64_t timeout_ns, pavo_error* error);

 private:
  struct Failure {
    uint64_t value;
    pavo_error error;
  };

  pavo_device* device_;
  mutable std::mutex mutex_;
  std::condition_variable raised_;
  uint64_t value_ = 0;
  std::vector<Failure> failures_;  // oldest first
};

namespace pavo::cpu {

// The fences of one submission. Work of this device has finished when its call returns, so a wait
// for a value that is not reached can only be a mistake of the caller: it would block for ever.
struct Fences {
  const pavo_fence* waits;
  uint32_t wait_count;
  const pavo_fence* signals;
  uint32_t signal_count;

  // PAVO_ERROR_INVALID_ARGUMENT for a timeline of another device, a value that no work will reach,
  // and a signal that does not rise.
  int32_t check(const pavo_device* device, pavo_error* error) const;

  // Raises every signal. A failure is reported through the timelines (PAVO_OK is returned), or
  // through `error` if there is no signal.
  int32_t finish(const pavo_error* failure, pavo_error* error) const;
};

}  // namespace pavo::cpu
