// Threads that share the loops of a kernel.
//
// Workers spin for some tens of microseconds after a loop, since the next kernel usually follows at
// once, and then sleep. The calling thread takes part, so a pool of one starts no thread; it also
// takes the parts that no worker has begun, so that a worker whose core is busy with another
// program holds nothing up.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
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
  // Fewer than threads() if the system did not give as many; loops are cut into the same parts.
  int32_t running_threads() const { return 1 + static_cast<int32_t>(workers_.size()); }

  // Calls fn(begin, end, part) for parts that together cover 0..count-1 once, and returns when all
  // are done. Every begin is a multiple of grain; 0 <= part < threads() differs between the parts
  // of a loop, so it can choose scratch memory. The parts depend on count, grain and threads()
  // alone, which thread runs one does not: fn must not wait for another part. One caller at a time;
  // fn must not throw or call the pool.
  template <typename Fn>
  void parallel_for(int64_t count, int64_t grain, Fn&& fn) {
    using Callable = std::remove_reference_t<Fn>;
    run(count, grain, const_cast<void*>(static_cast<const void*>(&fn)), &call_fn<Callable>);
  }

 private:
  using Call = void (*)(void* fn, int64_t begin, int64_t end, int32_t part);

  struct Loop {
    int64_t count = 0;
    int64_t grain = 1;
    int64_t parts = 0;
    void* fn = nullptr;
    Call call = nullptr;
  };

  // Whether a part of the loop waits for a thread; on a cache line of its own. Who takes an offer
  // back runs the part. The loop cannot end before that, so loop_ holds still until then.
  struct alignas(64) Offer {
    std::atomic<bool> open{false};
  };

  template <typename Callable>
  static void call_fn(void* fn, int64_t begin, int64_t end, int32_t part) {
    (*static_cast<Callable*>(fn))(begin, end, part);
  }

  void run(int64_t count, int64_t grain, void* fn, Call body);
  void run_part(int64_t part) const;
  // Runs the part if it is still open.
  void take(int64_t part);
  void worker(int64_t part);
  // Blocks while `value` is `old`: spins for spin_ns_, then sleeps.
  void wait_while(const std::atomic<uint32_t>& value, uint32_t old) const;
  void stop();

  int32_t threads_;
  int64_t spin_ns_;
  Loop loop_;                        // written by the caller before it offers parts
  std::unique_ptr<Offer[]> offers_;  // [threads_]; the first is not used
  // On cache lines of their own: workers poll the first, the caller polls the second.
  alignas(64) std::atomic<uint32_t> generation_{0};
  alignas(64) std::atomic<uint32_t> unfinished_{0};  // parts, without the caller's own
  alignas(64) std::atomic<bool> stopping_{false};
  std::vector<std::thread> workers_;
};

// Cores that this process may run on, at least 1; hyper-threads of one core count once.
int32_t available_cores();

}  // namespace pavo::cpu
