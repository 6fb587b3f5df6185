#include "core/host_api.h"

#include <algorithm>
#include <cstdlib>
#include <list>
#include <mutex>
#include <utility>

namespace pavo {
namespace {

// Length of the UTF-8 sequence at the start of text, 0 if there is none.
size_t utf8_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return 1;
  }
  const size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) {
      return 0;
    }
  }
  // Overlong forms, surrogates, and beyond U+10FFFF.
  const unsigned char second = byte(1);
  const bool wrong = (first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) ||
                     (first == 0xf0 && second < 0x90) || (first == 0xf4 && second > 0x8f);
  return wrong ? 0 : length;
}

}  // namespace

HostApi::HostApi(std::string name, Log log)
    : name_(std::move(name)),
      log_(std::move(log)),
      table_{
          sizeof(pavo_host_api),
          PAVO_ABI_MAJOR,
          PAVO_ABI_MINOR,
          0,
          this,
          &HostApi::alloc,
          &HostApi::free,
          &HostApi::log} {}

HostApi& HostApi::immortal(std::string name, Log log) {
  // In a list, so that leak checkers know them.
  static std::mutex mutex;
  static auto* const hosts = new std::list<HostApi>();
  const std::lock_guard<std::mutex> lock(mutex);
  return hosts->emplace_back(std::move(name), std::move(log));
}

void* HostApi::alloc(void* context, uint64_t size, uint64_t alignment) {
  auto* self = static_cast<HostApi*>(context);
  constexpr uint64_t kLargest = uint64_t{1} << 62;
  const bool power_of_two = alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (!power_of_two || alignment > kLargest || size > kLargest) {
    return nullptr;
  }
  if (self->fail_countdown_.load(std::memory_order_relaxed) > 0) {
    int64_t left = self->fail_countdown_.load(std::memory_order_relaxed);
    while (left > 1 && !self->fail_countdown_.compare_exchange_weak(left, left - 1)) {
    }
    if (left == 1) {
      return nullptr;
    }
  }
  void* memory = nullptr;
  // posix_memalign wants at least a pointer's alignment; a size of 0 still gets its own address.
  const size_t align = std::max<size_t>(alignment, sizeof(void*));
  if (posix_memalign(&memory, align, std::max<size_t>(size, 1)) != 0) {
    return nullptr;
  }
  const auto bytes = static_cast<int64_t>(size);
  const int64_t used = self->used_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  int64_t peak = self->peak_bytes_.load(std::memory_order_relaxed);
  while (used > peak && !self->peak_bytes_.compare_exchange_weak(peak, used)) {
  }
  self->block_count_.fetch_add(1, std::memory_order_relaxed);
  return memory;
}

void HostApi::free(void* context, void* memory, uint64_t size) {
  if (memory == nullptr) {
    return;
  }
  auto* self = static_cast<HostApi*>(context);
  std::free(memory);
  self->used_bytes_.fetch_sub(static_cast<int64_t>(size), std::memory_order_relaxed);
  self->block_count_.fetch_sub(1, std::memory_order_relaxed);
}

void HostApi::log(void* context, int32_t level, const char* message, uint64_t size) {
  const auto* self = static_cast<HostApi*>(context);
  if (message == nullptr || !self->log_) {
    return;
  }
  const int32_t known = std::clamp<int32_t>(level, PAVO_LOG_DEBUG, PAVO_LOG_ERROR);
  try {
    self->log_(known, self->name_ + ": " + printable(std::string_view(message, size)));
  } catch (...) {
    return;  // out of memory; nothing may be thrown into a plugin
  }
}

std::string printable(std::string_view text, size_t max_size) {
  std::string out;
  out.reserve(std::min(text.size(), max_size));
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const auto first = static_cast<unsigned char>(text[0]);
    // U+0080 to U+009F are control characters too, written as 0xc2 0x80 to 0xc2 0x9f.
    const bool control =
        first < 0x20 || first == 0x7f ||
        (first == 0xc2 && length == 2 && static_cast<unsigned char>(text[1]) < 0xa0);
    const size_t step = std::max<size_t>(length, 1);
    const bool blank = first == '\n' || first == '\t';
    const std::string_view piece = blank                    ? " "
                                   : length == 0 || control ? "?"
                                                            : text.substr(0, step);
    if (out.size() + piece.size() > max_size) {
      break;
    }
    out.append(piece);
    text.remove_prefix(step);
  }
  return out;
}

}  // namespace pavo
