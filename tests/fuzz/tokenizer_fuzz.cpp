// Text through a vocabulary that has every byte: it must come back as it went in, by every
// splitting rule, and streaming must give the same characters as decoding at once. The first byte
// of the input chooses the rule.
#include <string>
#include <string_view>

#include "llm/byte_alphabet.h"
#include "llm/gguf.h"
#include "llm/tokenizer.h"
#include "llm/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "tests/llm/gguf_builder.h"

namespace {

using pavo::fuzz::require;
using pavo::llm::Tokenizer;
using pavo::llm::testing::Bytes;
using pavo::llm::testing::GgufBuilder;

constexpr const char* kRules[] = {
    "gpt-2", "smollm", "llama-bpe", "qwen2", "tekken", "falcon", "deepseek-coder"};

Tokenizer make_tokenizer(const char* rule) {
  std::vector<std::string> tokens;
  tokens.reserve(300);
  for (int value = 0; value < 256; ++value) {
    tokens.push_back(pavo::llm::to_byte_alphabet(std::string(1, static_cast<char>(value))));
  }
  const std::vector<std::string> merges = {
      "a a",
      "aa aa",
      "a b",
      "1 2",
      "\u0120 a",
      "\u0120 \u0120",
      "\u00c3 \u00a9",
      "aa b",
      "\u010a \u010a"};
  for (std::string merge : merges) {
    tokens.push_back(merge.erase(merge.find(' '), 1));
  }
  std::vector<int32_t> kinds(tokens.size(), 1);
  tokens.insert(tokens.end(), {"<|a|>", "<|ab|>", "<u>"});
  kinds.insert(kinds.end(), {3, 3, 4});
  GgufBuilder builder;
  builder.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", rule);
  builder.texts("tokenizer.ggml.tokens", tokens).texts("tokenizer.ggml.merges", merges);
  builder.array("tokenizer.ggml.token_type", pavo::llm::GgufType::kInt32, kinds);
  const Bytes bytes = builder.build();
  const auto file = pavo::llm::GgufFile::parse(bytes);
  require(file.ok(), "the vocabulary is a file");
  auto tokenizer = Tokenizer::from_gguf(*file);
  require(tokenizer.ok(), "the vocabulary is a tokenizer");
  return std::move(*tokenizer);
}

const Tokenizer& tokenizer_for(uint8_t choice) {
  static const std::vector<Tokenizer> all = [] {
    std::vector<Tokenizer> made;
    for (const char* rule : kRules) {
      made.push_back(make_tokenizer(rule));
    }
    return made;
  }();
  return all[choice % all.size()];
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) {
    return 0;
  }
  const Tokenizer& tokenizer = tokenizer_for(data[0]);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  for (const bool parse_special : {false, true}) {
    size_t dropped = 0;
    const auto ids = tokenizer.encode(text, {.parse_special = parse_special}, &dropped);
    require(ids.ok(), "every text can be encoded");
    require(dropped == 0, "no byte is lost");
    require(tokenizer.decode(*ids, /*with_control=*/true) == text, "the text comes back");

    pavo::llm::StreamDecoder stream(tokenizer, /*with_control=*/true);
    std::string streamed;
    bool valid = true;
    for (const int32_t id : *ids) {
      streamed += stream.next(id);
    }
    streamed += stream.finish();
    for (size_t i = 0; i < text.size();) {
      const auto step = pavo::llm::next_utf8(text.substr(i));
      valid = valid && step.kind == pavo::llm::Utf8Kind::kValid;
      i += step.length;
    }
    require(!valid || streamed == text, "streaming gives the same characters");
    for (size_t i = 0; i < streamed.size();) {
      const auto step = pavo::llm::next_utf8(std::string_view(streamed).substr(i));
      require(step.kind == pavo::llm::Utf8Kind::kValid, "streaming gives whole characters");
      i += step.length;
    }
  }
  return 0;
}

std::vector<std::vector<uint8_t>> pavo::fuzz::seeds() {
  const std::string_view texts[] = {
      "I've 'LL x1234 caf\u00e9's  HTTPServer\n\n  a\u180eb\u00a0!?/\n12.5",
      "aaaaaaab <|a|><|ab|><u>\r\n\t \u65e5\u672c\u8a9e\u1100 \U0001f999",
      "\xff\xe2\x82 aa \xed\xa0\x80\n  \n"};
  std::vector<std::vector<uint8_t>> out;
  for (size_t rule = 0; rule < std::size(kRules); ++rule) {
    for (const std::string_view text : texts) {
      std::vector<uint8_t> seed = {static_cast<uint8_t>(rule)};
      seed.insert(seed.end(), text.begin(), text.end());
      out.push_back(std::move(seed));
    }
  }
  return out;
}
