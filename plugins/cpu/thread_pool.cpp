#include "plugins/cpu/thread_pool.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <sched.h>

namespace pavo::cpu {
namespace {

// Between two kernels of a decode step lie a few microseconds, between two steps some tens; longer
// gaps belong to other programs.
constexpr int64_t kSpinNs = 50'000;
// With more threads than cores a spinning thread holds up the one that it waits for.
constexpr int64_t kOversubscribedSpinNs = 2'000;
constexpr int kPausesPerClockRead = 16;

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void pause_cpu() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Package and core number of a logical CPU; {-1, cpu} if the system does not say.
std::pair<int, int> core_of(int cpu) {
  const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
  int numbers[2] = {-1, cpu};
  const char* const files[2] = {"physical_package_id", "core_id"};
  for (int i = 0; i < 2; ++i) {
    std::FILE* file = std::fopen((folder + files[i]).c_str(), "re");
    int number = 0;
    const bool read = file != nullptr && std::fscanf(file, "%d", &number) == 1;
    if (file != nullptr) {
      std::fclose(file);
    }
    if (!read) {
      return {-1, cpu};
    }
    numbers[i] = number;
  }
  return {numbers[0], numbers[1]};
}

}  // namespace

int32_t available_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) {  // more CPUs than the set holds
    return std::max<int32_t>(1, static_cast<int32_t>(std::thread::hardware_concurrency()));
  }
  std::set<std::pair<int, int>> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) {
      cores.insert(core_of(cpu));
    }
  }
  return std::max<int32_t>(1, static_cast<int32_t>(cores.size()));
}

ThreadPool::ThreadPool(int32_t threads)
    : threads_(std::max<int32_t>(1, threads)),
      spin_ns_(threads_ <= available_cores() ? kSpinNs : kOversubscribedSpinNs),
      offers_(std::make_unique<Offer[]>(static_cast<size_t>(threads_))) {
  workers_.reserve(static_cast<size_t>(threads_ - 1));
  try {
    for (int32_t thread = 1; thread < threads_; ++thread) {
      workers_.emplace_back([this, thread] { worker(thread); });
    }
  } catch (const std::system_error&) {
    return;  // no more to be had: the caller takes the parts that lack a thread
  } catch (...) {
    stop();
    throw;
  }
}

ThreadPool::~ThreadPool() {
  stop();
}

void ThreadPool::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

void ThreadPool::wait_while(const std::atomic<uint32_t>& value, uint32_t old) const {
  const int64_t end = now_ns() + spin_ns_;
  do {
    for (int i = 0; i < kPausesPerClockRead; ++i) {
      if (value.load(std::memory_order_acquire) != old) {
        return;
      }
      pause_cpu();
    }
  } while (now_ns() < end);
  value.wait(old, std::memory_order_acquire);
}

void ThreadPool::run_part(int64_t part) const {
  const int64_t units = (loop_.count + loop_.grain - 1) / loop_.grain;
  const int64_t base = units / loop_.parts;
  const int64_t extra = units % loop_.parts;  // the first parts take one unit more
  const int64_t first = part * base + std::min(part, extra);
  const int64_t last = first + base + (part < extra ? 1 : 0);
  const int64_t end = std::min(last * loop_.grain, loop_.count);
  loop_.call(loop_.fn, first * loop_.grain, end, static_cast<int32_t>(part));
}

// The exchange that takes an offer acquires what its release wrote: loop_, and before it all that
// the caller did. Each decrement releases what a part wrote; decrements of one counter form a
// release sequence, so the caller's acquire of the zero sees the results of all parts.
void ThreadPool::take(int64_t part) {
  if (!offers_[static_cast<size_t>(part)].open.exchange(false, std::memory_order_acq_rel)) {
    return;
  }
  run_part(part);
  if (unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    unfinished_.notify_one();
  }
}

void ThreadPool::worker(int64_t part) {
  for (;;) {
    // Acquired before the offer is looked at: a loop raises it after its offers are open, so who
    // reads the new value finds the offer, and who finds none waits on the old value and is woken.
    const uint32_t seen = generation_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_relaxed)) {  // written before generation_ rose
      return;
    }
    take(part);
    wait_while(generation_, seen);
  }
}

void ThreadPool::run(int64_t count, int64_t grain, void* fn, Call body) {
  if (count <= 0) {
    return;
  }
  grain = std::max<int64_t>(1, grain);
  const int64_t units = (count + grain - 1) / grain;
  const int64_t parts = std::min<int64_t>(units, threads_);
  if (parts == 1) {
    body(fn, 0, count, 0);
    return;
  }
  loop_ = {count, grain, parts, fn, body};
  // Nobody counts down before an offer is open, and the offers release this with loop_.
  unfinished_.store(static_cast<uint32_t>(parts - 1), std::memory_order_relaxed);
  for (int64_t part = 1; part < parts; ++part) {
    offers_[static_cast<size_t>(part)].open.store(true, std::memory_order_release);
  }
  generation_.fetch_add(1, std::memory_order_release);
  generation_.notify_all();
  run_part(0);
  for (int64_t part = parts - 1; part > 0; --part) {
    take(part);
  }
  uint32_t left = unfinished_.load(std::memory_order_acquire);
  while (left != 0) {
    wait_while(unfinished_, left);
    left = unfinished_.load(std::memory_order_acquire);
  }
}

}  // namespace pavo::cpu
