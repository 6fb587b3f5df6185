// The alphabet of byte-level vocabularies: each of the 256 bytes is written as one printable
// character, so that token texts are readable Unicode whatever bytes they stand for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pavo::llm {

// " a" -> "\u0120a": bytes as the text that a vocabulary has for them.
std::string to_byte_alphabet(std::string_view bytes);

// The way back, added to *out; false, and nothing added, if the text has a character outside of the
// alphabet.
bool append_from_byte_alphabet(std::string_view text, std::string* out);

}  // namespace pavo::llm
