// GGUF files: whatever the bytes, parsing ends with a file whose every view lies inside of them, or
// with a message. A file with a vocabulary is then used to tokenize.
#include <cstring>

#include "llm/byte_alphabet.h"
#include "llm/config_reader.h"
#include "llm/gguf.h"
#include "llm/tokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/llm/gguf_builder.h"

namespace {

using pavo::fuzz::require;
using pavo::llm::GgufFile;
using pavo::llm::GgufType;
using pavo::llm::testing::Bytes;
using pavo::llm::testing::GgufBuilder;

void check_views(const GgufFile& file, std::span<const std::byte> all) {
  const auto inside = [&](const std::byte* begin, uint64_t size) {
    return begin >= all.data() && begin <= all.data() + all.size() &&
           size <= static_cast<uint64_t>(all.data() + all.size() - begin);
  };
  for (const auto& entry : file.entries()) {
    require(inside(entry.value.bytes.data(), entry.value.bytes.size()), "values lie in the file");
    require(file.find(entry.key) == &entry.value, "keys are found");
    pavo::llm::describe(entry.value);
    const auto text = file.get<std::string_view>(entry.key);
    const auto texts = file.get<std::vector<std::string_view>>(entry.key);
    const auto integers = file.get<std::vector<int64_t>>(entry.key);
    const auto floats = file.get<std::vector<double>>(entry.key);
    if (texts.ok()) {
      require(texts->size() == entry.value.count, "arrays are whole");
    }
    require(text.ok() == (entry.value.type == GgufType::kString), "text comes from strings alone");
    require(!integers.ok() || !floats.ok() || integers->empty(), "one type fits");
  }
  for (const auto& tensor : file.tensors().all()) {
    require(inside(tensor.data, tensor.size_bytes), "tensors lie in the file");
    require(!tensor.shape.empty(), "tensors have a shape");
  }
}

void read_config(const GgufFile& file) {
  pavo::llm::ConfigReader reader(file, "llama.");
  for (const auto& entry : file.entries()) {
    if (entry.key.starts_with("llama.")) {
      const std::string key(entry.key.substr(6));
      const int64_t integer = reader.integer(key, 1, 1000, 7);
      const double number = reader.number(key, 0.5, 2.0, 1.0);
      require(integer >= 1 && integer <= 1000, "integers are in their range");
      require(number >= 0.5 && number <= 2.0, "numbers are in their range");
      reader.flag(key, false);
      reader.text(key, "");
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  const auto file = GgufFile::parse(bytes);
  if (!file.ok()) {
    require(!file.status().message().empty(), "errors have a message");
    return 0;
  }
  check_views(*file, bytes);
  read_config(*file);
  const auto tokenizer = pavo::llm::Tokenizer::from_gguf(*file);
  if (tokenizer.ok()) {
    const auto ids =
        tokenizer->encode("hello <a>, \xff!", {.add_special = true, .parse_special = true});
    require(ids.ok(), "a short text can be encoded");
    for (const int32_t id : *ids) {
      require(id >= 0 && id < tokenizer->vocab_size(), "ids are tokens");
    }
    tokenizer->decode(*ids, true);
  }
  return 0;
}

std::vector<std::vector<uint8_t>> pavo::fuzz::seeds() {
  GgufBuilder model;
  model.text("general.architecture", "llama").u32("llama.block_count", 1).f32("llama.eps", 1e-5f);
  model.scalar<uint8_t>("llama.flag", GgufType::kBool, 1);
  model.array<double>("numbers", GgufType::kFloat64, {1.0, 2.0}).u32("general.alignment", 64);
  model.alignment = 64;
  model.f32_tensor("a", {4, 2})
      .tensor("b", {32, 3}, 2, Bytes(3 * 18))
      .tensor("c", {3}, 77, Bytes(8));

  GgufBuilder vocabulary;
  const std::vector<std::string> tokens = {"h", "e", "l", "o", "he", "ll", "hell", "<a>", "\u0120"};
  vocabulary.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "smollm");
  vocabulary.texts("tokenizer.ggml.tokens", tokens);
  vocabulary.texts("tokenizer.ggml.merges", {"h e", "l l", "he ll"});
  vocabulary.array<int32_t>(
      "tokenizer.ggml.token_type", GgufType::kInt32, {1, 1, 1, 1, 1, 1, 1, 3, 1});
  vocabulary.u32("tokenizer.ggml.bos_token_id", 7);

  std::vector<std::vector<uint8_t>> out;
  for (const Bytes& bytes : {model.build(), vocabulary.build()}) {
    std::vector<uint8_t> seed(bytes.size());
    std::memcpy(seed.data(), bytes.data(), bytes.size());
    out.push_back(std::move(seed));
  }
  return out;
}
