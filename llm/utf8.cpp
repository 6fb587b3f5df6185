#include "llm/utf8.h"

namespace pavo::llm {

Utf8Step next_utf8(std::string_view text) {
  const auto byte_at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned lead = byte_at(0);
  if (lead < 0x80) {
    return {Utf8Kind::kValid, 1, lead};
  }
  if (lead < 0xc2 || lead > 0xf4) {
    return {Utf8Kind::kInvalid, 1, 0};
  }
  const uint32_t length = lead < 0xe0 ? 2 : (lead < 0xf0 ? 3 : 4);
  // The second byte's range is narrower after four of the leads: that excludes overlong forms
  // (e0, f0), surrogates (ed) and values above the last code point (f4).
  const unsigned low = lead == 0xe0 ? 0xa0 : (lead == 0xf0 ? 0x90 : 0x80);
  const unsigned high = lead == 0xed ? 0x9f : (lead == 0xf4 ? 0x8f : 0xbf);
  char32_t character = lead & (0xffu >> (length + 1));
  for (uint32_t i = 1; i < length; ++i) {
    if (i == text.size()) {
      return {Utf8Kind::kIncomplete, i, 0};
    }
    const unsigned byte = byte_at(i);
    if (byte < (i == 1 ? low : 0x80) || byte > (i == 1 ? high : 0xbf)) {
      return {Utf8Kind::kInvalid, i, 0};
    }
    character = character << 6 | (byte & 0x3f);
  }
  return {Utf8Kind::kValid, length, character};
}

}  // namespace pavo::llm
