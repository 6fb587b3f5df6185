#include "core/mapped_files.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>

namespace pavo {
namespace {

constexpr size_t kMaxFiles = 1024;  // the largest checkpoints have some 200
constexpr size_t kPathBytes = 200;

// Plain memory, since a signal handler reads it. Valid while begin is not 0.
struct MappedRange {
  std::atomic<uintptr_t> begin{0};
  uintptr_t end = 0;
  std::array<char, kPathBytes + 1> path = {};
};

std::array<MappedRange, kMaxFiles> ranges;

// Never destroyed: a file may be unmapped after it otherwise.
std::mutex& ranges_mutex() {
  static auto* const mutex = new std::mutex();
  return *mutex;
}

}  // namespace

void add_mapped_file(const void* address, size_t size, const std::string& path) {
  const std::lock_guard<std::mutex> lock(ranges_mutex());
  const auto begin = reinterpret_cast<uintptr_t>(address);
  for (MappedRange& range : ranges) {
    if (range.begin.load(std::memory_order_relaxed) == 0) {
      const size_t skipped = path.size() - std::min(path.size(), kPathBytes);
      range.path[path.copy(range.path.data(), kPathBytes, skipped)] = '\0';
      range.end = begin + size;
      range.begin.store(begin, std::memory_order_release);  // what stands before it is whole
      return;
    }
  }
}

void remove_mapped_file(const void* address) {
  const std::lock_guard<std::mutex> lock(ranges_mutex());
  for (MappedRange& range : ranges) {
    if (range.begin.load(std::memory_order_relaxed) == reinterpret_cast<uintptr_t>(address)) {
      range.begin.store(0, std::memory_order_relaxed);
      return;
    }
  }
}

const char* mapped_file_at(uintptr_t address) {
  for (const MappedRange& range : ranges) {
    const uintptr_t begin = range.begin.load(std::memory_order_acquire);
    if (begin != 0 && address >= begin && address < range.end) {
      return range.path.data();
    }
  }
  return nullptr;
}

}  // namespace pavo
