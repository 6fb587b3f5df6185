// Memory of the mock device: pages that nobody can read or write but a queued operation while it
// runs, with a page behind each block that nobody ever can.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

namespace pavo::mock {

// All functions: any thread.
class Pages {
 public:
  // NULL if the system has no memory. The block is closed, or open for ever if `visible`.
  void* allocate(uint64_t size, uint64_t alignment, bool visible);
  void release(void* memory);
  // Counted: the block is accessible until every open() has its close().
  void open(const void* memory);
  void close(const void* memory);

  static Pages& instance();

 private:
  struct Block {
    void* base = nullptr;
    uint64_t bytes = 0;  // accessible ones; a guard page lies behind them
    int users = 0;
  };

  std::mutex mutex_;
  std::map<const void*, Block> blocks_;  // by the address that was given out
};

// While one lives, what its thread allocates is visible.
class VisibleScope {
 public:
  VisibleScope();
  ~VisibleScope();
  VisibleScope(const VisibleScope&) = delete;
  VisibleScope& operator=(const VisibleScope&) = delete;
  static bool active();

 private:
  bool outer_;
};

}  // namespace pavo::mock
