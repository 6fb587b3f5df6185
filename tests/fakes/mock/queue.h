// Timelines and queues of the mock device. A queue is a thread that runs its items in order, each
// after the fences it waits for and a set latency.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "pavo/plugin.h"

namespace pavo::mock {

class Device;

class Timeline {
 public:
  explicit Timeline(Device* device) : device_(device) {}

  Device* device() const { return device_; }
  static Timeline* of(pavo_timeline* handle) { return reinterpret_cast<Timeline*>(handle); }
  pavo_timeline* handle() { return reinterpret_cast<pavo_timeline*>(this); }

  // Notes that queued work will raise it; false unless the value rises.
  bool promise(uint64_t value);
  uint64_t promised() const;
  // `failure` (NULL: none) is kept for the next wait that reaches the value.
  void signal(uint64_t value, const pavo_error* failure);
  void wait_silently(uint64_t value);
  // As timeline_wait of the ABI.
  int32_t wait(uint64_t value, int64_t timeout_ns, pavo_error* error);

 private:
  struct Failure {
    uint64_t value;
    pavo_error error;
  };

  Device* device_;
  mutable std::mutex mutex_;
  std::condition_variable raised_;
  uint64_t value_ = 0;
  uint64_t promised_ = 0;
  std::vector<Failure> failures_;
};

struct Work {
  std::vector<pavo_fence> waits;
  std::vector<pavo_fence> signals;
  std::function<int32_t(pavo_error*)> run;
};

class Queue {
 public:
  explicit Queue(std::chrono::microseconds latency);
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;
  ~Queue();  // after all that is queued

  void push(Work work);
  void drain();

 private:
  void loop();

  std::chrono::microseconds latency_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> items_;
  bool busy_ = false;
  bool ending_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace pavo::mock
