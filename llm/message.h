// Building error messages: parts are joined, and text that came from a file is made printable
// first, so that a hostile name cannot reach the terminal as control codes.
#pragma once

#include <cstdint>
#include <span>
#include <sstream>
#include <string>
#include <string_view>

namespace pavo::llm {

template <typename... Parts>
std::string concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// 'text' in single quotes; control and non-ASCII bytes as \xNN, cut after 80 bytes with "...".
std::string quote(std::string_view text);

// "[576, 1536]"
std::string shape_text(std::span<const int64_t> shape);

}  // namespace pavo::llm
