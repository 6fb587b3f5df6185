// A position in bytes that nobody vouches for: each step says whether that many are left.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace pavo::llm {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  std::span<const std::byte> all() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  size_t position() const { return position_; }
  size_t left() const { return bytes_.size() - position_; }
  // What was read since `start`, an earlier position().
  std::span<const std::byte> since(size_t start) const {
    return bytes_.subspan(start, position_ - start);
  }

  // All of these return false, and do not move, when too few bytes are left.
  bool take(uint64_t count, std::span<const std::byte>* out) {
    if (count > left()) {
      return false;
    }
    *out = bytes_.subspan(position_, static_cast<size_t>(count));
    position_ += static_cast<size_t>(count);
    return true;
  }
  bool take_text(uint64_t count, std::string_view* out) {
    std::span<const std::byte> bytes;
    if (!take(count, &bytes)) {
      return false;
    }
    *out = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
    return true;
  }
  template <typename T>
  bool read(T* out) {
    static_assert(std::endian::native == std::endian::little, "files are little-endian");
    std::span<const std::byte> bytes;
    if (!take(sizeof(T), &bytes)) {
      return false;
    }
    std::memcpy(out, bytes.data(), sizeof(T));
    return true;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t position_ = 0;
};

}  // namespace pavo::llm
