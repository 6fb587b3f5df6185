// FNV-1a, 64 bit: spreads names of files and keys; guards nothing against intent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pavo {

class Hash {
 public:
  void add(std::string_view bytes) {
    for (const char byte : bytes) {
      value_ = (value_ ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
    }
  }
  // 16 hex digits.
  std::string text() const {
    constexpr char kDigits[] = "0123456789abcdef";
    std::string hex(16, '0');
    for (size_t i = 0; i < hex.size(); ++i) {
      hex[i] = kDigits[(value_ >> (60 - 4 * i)) & 15];
    }
    return hex;
  }

 private:
  uint64_t value_ = 0xcbf29ce484222325u;
};

inline std::string hash_text(std::string_view bytes) {
  Hash hash;
  hash.add(bytes);
  return hash.text();
}

}  // namespace pavo
