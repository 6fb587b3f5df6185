// Steps through bytes that should be UTF-8.
#pragma once

#include <cstdint>
#include <string_view>

namespace pavo::llm {

enum class Utf8Kind {
  kValid,
  kInvalid,     // no character starts here
  kIncomplete,  // the text ends inside of a character that more bytes could complete
};

struct Utf8Step {
  Utf8Kind kind = Utf8Kind::kInvalid;
  uint32_t length = 0;     // bytes to step over, at least 1
  char32_t character = 0;  // of kValid
};

// What the text, which is not empty, begins with. Overlong forms, surrogates and values above
// U+10FFFF are invalid.
Utf8Step next_utf8(std::string_view text);

}  // namespace pavo::llm
