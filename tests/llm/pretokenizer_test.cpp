#include "llm/pretokenizer.h"

#include <string>

#include "llm/text_matcher.h"
#include "tests/llm/temp_dir.h"

namespace pavo::llm {
namespace {

using testing::contains;
using Pieces = std::vector<std::string>;

Pieces split(const std::string& rule, std::string_view text) {
  const auto made = PreTokenizer::make(rule);
  EXPECT_TRUE(made.ok()) << made.status().message();
  Pieces pieces;
  const Status status =
      made->split(text, [&](std::string_view piece) { pieces.emplace_back(piece); });
  EXPECT_TRUE(status.ok()) << status.message();
  return pieces;
}

// Expected pieces: the same steps built from Hugging Face's `tokenizers` 0.23 (Split with the
// published patterns, Digits, Punctuation, ByteLevel).
TEST(PreTokenizer, SplitsLikeTheOriginalImplementation) {
  const std::string text =
      "I've'LL x1234 caf\u00e9's  HTTPServer iPhone\n\n  a\u180eb\u00a0!?/\n12.5'\u017f\u2167\r\n ";
  const std::pair<const char*, Pieces> cases[] = {
      {"smollm",
       {"I",      "'ve",        "'",      "LL",     " x",          "1",       "2",     "3",
        "4",      " caf\u00e9", "'s",     " ",      " HTTPServer", " iPhone", "\n\n ", " a",
        "\u180e", "b",          "\u00a0", "!?/",    "\n",          "1",       "2",     ".",
        "5",      "'",          "\u017f", "\u2167", "\r\n "}},
      {"gpt-2",
       {"I",           "'ve",     "'",     "LL", " x",     "1234",   " caf\u00e9", "'s",  " ",
        " HTTPServer", " iPhone", "\n\n ", " a", "\u180e", "b",      "\u00a0",     "!?/", "\n",
        "12",          ".",       "5",     "'",  "\u017f", "\u2167", "\r\n "}},
      {"llama-bpe",
       {"I",     "'ve",         "'LL",     " x",   "123",     "4",      " caf\u00e9", "'s",
        " ",     " HTTPServer", " iPhone", "\n\n", " ",       " a",     "\u180eb",    "\u00a0",
        "!?/\n", "12",          ".",       "5",    "'\u017f", "\u2167", "\r\n",       " "}},
      {"qwen2", {"I", "'ve",        "'LL",     " x",     "1",           "2",       "3",
                 "4", " caf\u00e9", "'s",      " ",      " HTTPServer", " iPhone", "\n\n",
                 " ", " a",         "\u180eb", "\u00a0", "!?/\n",       "1",       "2",
                 ".", "5",          "'\u017f", "\u2167", "\r\n",        " "}},
      {"tekken", {"I",    "'ve",        "'LL", " x",      "1",           "2",     "3",
                  "4",    " caf\u00e9", "'s",  " ",       " HTTPServer", " i",    "Phone",
                  "\n\n", " ",          " a",  "\u180eb", "\u00a0",      "!?/\n", "1",
                  "2",    ".",          "5",   "'\u017f", "\u2167",      "\r\n",  " "}},
      {"falcon", {"I",     "'",          "ve",     "'", "LL",     " x",          "123",
                  "4",     " caf\u00e9", "'",      "s", " ",      " HTTPServer", " iPhone",
                  "\n\n ", " a",         "\u180e", "b", "\u00a0", "!?/",         "\n",
                  "12",    ".",          "5",      "'", "\u017f", "\u2167",      "\r\n "}},
      {"deepseek-coder",
       {"I", "'",          "ve",     "'",      "LL",        " x",          "1",       "2",  "3",
        "4", " caf\u00e9", "'",      "s",      " ",         " HTTPServer", " iPhone", "\n", "\n",
        " ", " a",         "\u180e", "b",      "\u00a0!?/", "\n",          "1",       "2",  ".",
        "5", "'",          "\u017f", "\u2167", "\r",        "\n",          " "}}};
  for (const auto& [rule, expected] : cases) {
    EXPECT_EQ(split(rule, text), expected) << rule;
  }
}

TEST(PreTokenizer, KnowsWhichRulesLookWholePiecesUp) {
  EXPECT_TRUE(PreTokenizer::make("llama-bpe")->prefers_whole_pieces());
  EXPECT_FALSE(PreTokenizer::make("smollm")->prefers_whole_pieces());
}

TEST(PreTokenizer, RefusesUnknownRules) {
  for (const char* name : {"", "default", "smollm2"}) {
    const auto made = PreTokenizer::make(name);
    ASSERT_FALSE(made.ok()) << name;
    EXPECT_EQ(made.status().code(), Code::kUnsupported);
    EXPECT_TRUE(contains(made.status().message(), std::string("found '") + name + "'"));
  }
}

// Each rule on a quarter megabyte of one character: what would backtrack does so in linear time.
TEST(PreTokenizer, StaysLinear) {
  constexpr size_t kBytes = 1 << 18;
  for (const char* rule : {"gpt-2", "smollm", "llama-bpe", "qwen2", "tekken", "falcon"}) {
    for (const char* unit : {" ", "\n", "a", "A", "1", "!", "'", "\u00e9", " \n", "\u02b0"}) {
      std::string text;
      while (text.size() < kBytes) {
        text += unit;
      }
      size_t bytes = 0;
      for (const std::string& piece : split(rule, text)) {
        bytes += piece.size();
      }
      EXPECT_EQ(bytes, text.size()) << rule;
    }
  }
}

TEST(TextMatcher, FindsTheFirstThenTheLongest) {
  const TextMatcher matcher({{"<a>", 1}, {"<a><b>", 2}, {"b>", 3}, {"", 4}, {"<a>", 5}});
  const auto expect_match = [&](std::string_view text, size_t from, size_t begin, int32_t id) {
    const TextMatcher::Match match = matcher.find(text, from);
    EXPECT_EQ(match.id, id) << text;
    EXPECT_EQ(match.begin, begin) << text;
  };
  expect_match("x<a>y", 0, 1, 1);
  expect_match("x<a><b>", 0, 1, 2);
  expect_match("x<a><b", 0, 1, 1);
  expect_match("x<a><b>", 2, 5, 3);
  expect_match("<<<a", 0, 0, -1);
  expect_match("", 0, 0, -1);
  EXPECT_EQ(TextMatcher().find("<a>", 0).id, -1);
}

}  // namespace
}  // namespace pavo::llm
