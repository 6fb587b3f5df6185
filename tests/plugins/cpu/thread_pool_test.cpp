#include "plugins/cpu/thread_pool.h"

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <future>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <pthread.h>

namespace pavo::cpu {
namespace {

using Parts = std::set<std::tuple<int64_t, int64_t, int32_t>>;

Parts parts_of(ThreadPool& pool, int64_t count, int64_t grain) {
  Parts parts;
  std::mutex mutex;
  pool.parallel_for(count, grain, [&](int64_t begin, int64_t end, int32_t thread) {
    const std::lock_guard<std::mutex> lock(mutex);
    parts.emplace(begin, end, thread);
  });
  return parts;
}

TEST(ThreadPool, PartsCoverTheRangeOnce) {
  for (const int32_t threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (const int64_t count : {0, 1, 2, 7, 8, 9, 64, 1000}) {
      for (const int64_t grain : {1, 3, 8, 2000}) {
        const Parts parts = parts_of(pool, count, grain);
        EXPECT_LE(parts.size(), static_cast<size_t>(threads));
        int64_t next = 0;
        std::set<int32_t> used;
        for (const auto& [begin, end, thread] : parts) {
          EXPECT_EQ(begin, next);
          EXPECT_EQ(begin % grain, 0);
          EXPECT_LT(begin, end);
          EXPECT_TRUE(used.insert(thread).second) << "thread " << thread << " has two parts";
          EXPECT_LT(thread, threads);
          next = end;
        }
        EXPECT_EQ(next, count) << threads << " threads, grain " << grain;
      }
    }
  }
}

TEST(ThreadPool, PartsDependOnSizesAlone) {
  ThreadPool first(4);
  ThreadPool second(4);
  const Parts parts = parts_of(first, 103, 5);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(parts_of(second, 103, 5), parts);
  }
}

// Loops in quick succession, and after pauses that let the workers sleep.
TEST(ThreadPool, SurvivesBurstsAndSleep) {
  ThreadPool pool(4);
  std::vector<int64_t> sums(1000, 0);
  int64_t runs = 0;
  for (int burst = 0; burst < 20; ++burst) {
    for (int i = 0; i < 200; ++i, ++runs) {
      pool.parallel_for(1000, 16, [&](int64_t begin, int64_t end, int32_t) {
        for (int64_t k = begin; k < end; ++k) {
          sums[static_cast<size_t>(k)] += k;
        }
      });
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (int64_t k = 0; k < 1000; ++k) {
    ASSERT_EQ(sums[static_cast<size_t>(k)], k * runs);
  }
}

std::atomic<bool> hold_thread{false};
std::atomic<bool> thread_held{false};

void hold(int /*signal*/) {
  thread_held = true;
  while (hold_thread) {
  }
}

// A worker whose core is taken by another program for a while holds nothing up.
TEST(ThreadPool, CallerTakesThePartsOfAHeldWorker) {
  ThreadPool pool(2);
  const pthread_t caller = pthread_self();
  std::atomic<pthread_t> worker{caller};
  while (worker == caller) {
    pool.parallel_for(2, 1, [&](int64_t, int64_t, int32_t) {
      if (pthread_self() != caller) {
        worker = pthread_self();
      }
    });
  }
  std::signal(SIGUSR1, hold);
  thread_held = false;
  hold_thread = true;
  pthread_kill(worker, SIGUSR1);
  while (!thread_held) {
    std::this_thread::yield();
  }
  std::set<std::pair<int64_t, int32_t>> parts;
  std::future<void> loop = std::async(std::launch::async, [&] {
    pool.parallel_for(
        2, 1, [&](int64_t begin, int64_t, int32_t part) { parts.emplace(begin, part); });
  });
  const bool ended = loop.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
  hold_thread = false;
  loop.wait();
  std::signal(SIGUSR1, SIG_DFL);
  EXPECT_TRUE(ended) << "the loop waited for a worker that cannot run";
  EXPECT_EQ(parts, (std::set<std::pair<int64_t, int32_t>>{{0, 0}, {1, 1}}));
}

// No thread can have a stack as large as the address space.
TEST(ThreadPool, CutsLoopsTheSameWithoutThreads) {
  pthread_attr_t usual;
  pthread_attr_t hopeless;
  ASSERT_EQ(pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(pthread_attr_init(&hopeless), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&hopeless, size_t{1} << 47), 0);
  ASSERT_EQ(pthread_setattr_default_np(&hopeless), 0);
  ThreadPool pool(3);
  ASSERT_EQ(pthread_setattr_default_np(&usual), 0);
  EXPECT_EQ(pool.running_threads(), 1);
  EXPECT_EQ(pool.threads(), 3);
  std::set<std::tuple<int64_t, int64_t, int32_t>> parts;
  pool.parallel_for(
      7, 1, [&](int64_t begin, int64_t end, int32_t part) { parts.emplace(begin, end, part); });
  EXPECT_EQ(
      parts, (std::set<std::tuple<int64_t, int64_t, int32_t>>{{0, 3, 0}, {3, 5, 1}, {5, 7, 2}}));
}

TEST(ThreadPool, StartsAndStopsIdle) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool pool(3);
  }
}

TEST(AvailableCores, IsWithinWhatTheSystemHas) {
  EXPECT_GE(available_cores(), 1);
  EXPECT_LE(available_cores(), static_cast<int32_t>(std::thread::hardware_concurrency()));
}

}  // namespace
}  // namespace pavo::cpu
