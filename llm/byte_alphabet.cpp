#include "llm/byte_alphabet.h"

#include <array>

#include "llm/utf8.h"

namespace pavo::llm {
namespace {

// Printable Latin-1 stands for itself; the rest, in byte order, is U+0100 and up.
struct Alphabet {
  static constexpr char32_t kFirstShifted = 0x100;
  static constexpr size_t kCharacters = 0x100 + 68;
  std::array<char32_t, 256> character_of{};
  std::array<int, kCharacters> byte_of{};

  constexpr Alphabet() {
    byte_of.fill(-1);
    char32_t next = kFirstShifted;
    for (int byte = 0; byte < 256; ++byte) {
      const bool itself = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte != 0xad);
      const char32_t character = itself ? static_cast<char32_t>(byte) : next++;
      character_of[static_cast<size_t>(byte)] = character;
      byte_of[character] = byte;
    }
  }
};
constexpr Alphabet kAlphabet;

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) {
    const char32_t character = kAlphabet.character_of[static_cast<unsigned char>(byte)];
    if (character < 0x80) {
      out += static_cast<char>(character);
    } else {  // all others are below U+0800: two bytes
      out += static_cast<char>(0xc0 | character >> 6);
      out += static_cast<char>(0x80 | (character & 0x3f));
    }
  }
  return out;
}

bool append_from_byte_alphabet(std::string_view text, std::string* out) {
  const size_t before = out->size();
  while (!text.empty()) {
    const Utf8Step step = next_utf8(text);
    if (step.kind != Utf8Kind::kValid || step.character >= Alphabet::kCharacters ||
        kAlphabet.byte_of[step.character] < 0) {
      out->resize(before);
      return false;
    }
    *out += static_cast<char>(kAlphabet.byte_of[step.character]);
    text.remove_prefix(step.length);
  }
  return true;
}

}  // namespace pavo::llm
