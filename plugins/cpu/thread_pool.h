// Threads that share the loops of a kernel.
//
// Workers spin for some tens of microseconds after a loop, since the next kernel usually follows at
// once, and then sleep. The calling thread takes part, so a pool of one starts no thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <type_traits>
#include <vector>

namespace pavo::cpu {

class ThreadPool {
 public:
  // Starts threads - 1 workers; threads >= 1. Throws std::system_error if the system gives none.
  explicit ThreadPool(int32_t threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int32_t threads() const { return threads_; }

  // Calls fn(begin, end, thread) for parts that together cover 0..count-1 once, and returns when
  // all are done. Every begin is a multiple of grain; there is at most one part per thread, and
  // 0 <= thread < threads() differs between parts that run at the same time. The parts depend on
  // count, grain and threads() alone. One caller at a time; fn must not throw or call the pool.
  template <typename Fn>
  void parallel_for(int64_t count, int64_t grain, Fn&& fn) {
    using Callable = std::remove_reference_t<Fn>;
    run(count, grain, const_cast<void*>(static_cast<const void*>(&fn)), &call_fn<Callable>);
  }

 private:
  using Call = void (*)(void* fn, int64_t begin, int64_t end, int32_t thread);

  struct Loop {
    int64_t count = 0;
    int64_t grain = 1;
    int64_t parts = 0;
    void* fn = nullptr;
    Call call = nullptr;
  };

  template <typename Callable>
  static void call_fn(void* fn, int64_t begin, int64_t end, int32_t thread) {
    (*static_cast<Callable*>(fn))(begin, end, thread);
  }

  void run(int64_t count, int64_t grain, void* fn, Call body);
  static void run_part(const Loop& loop, int32_t part);
  void worker(int32_t thread);
  // Blocks while `value` is `old`: spins for spin_ns_, then sleeps.
  void wait_while(const std::atomic<uint32_t>& value, uint32_t old) const;
  void stop();

  int32_t threads_;
  int64_t spin_ns_;
  Loop loop_;  // written by the caller before generation_ rises
  // On cache lines of their own: workers poll the first, the caller polls the second.
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<uint32_t> running_{0};
  alignas(64) std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

// Cores that this process may run on, at least 1; hyper-threads of one core count once.
int32_t available_cores();

}  // namespace pavo::cpu
