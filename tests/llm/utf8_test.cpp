#include "llm/utf8.h"

#include <string>

#include <gtest/gtest.h>

#include "llm/byte_alphabet.h"

namespace pavo::llm {
namespace {

void expect_step(std::string_view text, Utf8Kind kind, uint32_t length) {
  const Utf8Step step = next_utf8(text);
  EXPECT_EQ(step.kind, kind) << ::testing::PrintToString(std::string(text));
  EXPECT_EQ(step.length, length) << ::testing::PrintToString(std::string(text));
}

TEST(Utf8, ReadsTheEndsOfEachRange) {
  const std::pair<std::string_view, char32_t> cases[] = {
      {"\x7f", 0x7f},
      {"\xc2\x80", 0x80},
      {"\xdf\xbf", 0x7ff},
      {"\xe0\xa0\x80", 0x800},
      {"\xed\x9f\xbf", 0xd7ff},
      {"\xee\x80\x80", 0xe000},
      {"\xef\xbf\xbf", 0xffff},
      {"\xf0\x90\x80\x80", 0x10000},
      {"\xf4\x8f\xbf\xbf", 0x10ffff}};
  for (const auto& [text, character] : cases) {
    expect_step(text, Utf8Kind::kValid, static_cast<uint32_t>(text.size()));
    EXPECT_EQ(next_utf8(text).character, character);
    for (size_t cut = 1; cut < text.size(); ++cut) {
      expect_step(text.substr(0, cut), Utf8Kind::kIncomplete, static_cast<uint32_t>(cut));
    }
  }
}

TEST(Utf8, RefusesWhatIsNoCharacter) {
  expect_step("\x80", Utf8Kind::kInvalid, 1);              // continuation first
  expect_step("\xc0\x80", Utf8Kind::kInvalid, 1);          // overlong
  expect_step("\xe0\x9f\xbf", Utf8Kind::kInvalid, 1);      // overlong
  expect_step("\xf0\x8f\xbf\xbf", Utf8Kind::kInvalid, 1);  // overlong
  expect_step("\xed\xa0\x80", Utf8Kind::kInvalid, 1);      // surrogate
  expect_step("\xf4\x90\x80\x80", Utf8Kind::kInvalid, 1);  // above U+10FFFF
  expect_step("\xf5\x80\x80\x80", Utf8Kind::kInvalid, 1);
  expect_step("\xe2\x82x", Utf8Kind::kInvalid, 2);  // cut short by another character
}

TEST(ByteAlphabet, WritesEveryByteAsOneCharacterAndBack) {
  for (int value = 0; value < 256; ++value) {
    const std::string byte(1, static_cast<char>(value));
    std::string back;
    ASSERT_TRUE(append_from_byte_alphabet(to_byte_alphabet(byte), &back));
    EXPECT_EQ(back, byte);
  }
  // Published vocabularies have these: space, newline, the first and the last shifted byte.
  EXPECT_EQ(to_byte_alphabet(" the"), "\u0120the");
  EXPECT_EQ(to_byte_alphabet("\n"), "\u010a");
  EXPECT_EQ(to_byte_alphabet(std::string(1, '\0')), "\u0100");
  EXPECT_EQ(to_byte_alphabet("\xad"), "\u0143");
  std::string out = "kept";
  EXPECT_FALSE(append_from_byte_alphabet("a b", &out));
  EXPECT_FALSE(append_from_byte_alphabet("a\u0144", &out));
  EXPECT_EQ(out, "kept");
}

}  // namespace
}  // namespace pavo::llm
