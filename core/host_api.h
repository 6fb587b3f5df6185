// What a plugin gets from the host: counted memory and the log. One HostApi per plugin, so that
// memory and messages have a name on them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "pavo/plugin.h"

namespace pavo {

// Minors of PAVO_ABI_MAJOR that this host talks. A draft minor may change anything, so only one.
inline constexpr uint32_t kHostMinMinor = PAVO_ABI_MINOR;
inline constexpr uint32_t kHostMaxMinor = PAVO_ABI_MINOR;

class HostApi {
 public:
  // Called from any thread with a PAVO_LOG_* level and a message without control characters.
  using Log = std::function<void(int32_t level, std::string_view message)>;

  // name: of the plugin, put before each message. The object must outlive the plugin, which for a
  // plugin loaded into the process means for ever.
  HostApi(std::string name, Log log);
  // One that is never destroyed: a plugin may call its host until the process is gone. Any thread.
  static HostApi& immortal(std::string name, Log log);
  HostApi(const HostApi&) = delete;
  HostApi& operator=(const HostApi&) = delete;

  const pavo_host_api* table() const { return &table_; }

  // Bytes that the plugin holds now, and the most it ever held.
  int64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  int64_t peak_bytes() const { return peak_bytes_.load(std::memory_order_relaxed); }
  int64_t block_count() const { return block_count_.load(std::memory_order_relaxed); }

  // From now on the n-th allocation (1: the next) and all later ones fail; 0: none. For tests of
  // how a plugin behaves without memory.
  void fail_from_allocation(int64_t n) { fail_countdown_.store(n, std::memory_order_relaxed); }

 private:
  static void* alloc(void* context, uint64_t size, uint64_t alignment);
  static void free(void* context, void* memory, uint64_t size);
  static void log(void* context, int32_t level, const char* message, uint64_t size);

  std::string name_;
  Log log_;
  pavo_host_api table_;
  std::atomic<int64_t> used_bytes_{0};
  std::atomic<int64_t> peak_bytes_{0};
  std::atomic<int64_t> block_count_{0};
  std::atomic<int64_t> fail_countdown_{0};
};

// A plugin's text made safe for a terminal: line breaks and tabs become spaces, other control
// characters and bytes that are not UTF-8 become '?', and it is cut after max_size bytes.
std::string printable(std::string_view text, size_t max_size = 4096);

}  // namespace pavo
