#include "llm/tokenizer.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <sstream>

#include "llm/byte_alphabet.h"
#include "llm/gguf.h"
#include "llm/model_file.h"
#include "tests/llm/gguf_builder.h"
#include "tests/llm/temp_dir.h"

namespace pavo::llm {
namespace {

using testing::Bytes;
using testing::contains;
using testing::GgufBuilder;
using Ids = std::vector<int32_t>;

constexpr int32_t kNormal = 1;
constexpr int32_t kControl = 3;
constexpr int32_t kUserDefined = 4;

// A small vocabulary, to be changed by tests before it is built.
struct TinyVocabulary {
  std::vector<std::string> tokens;
  std::vector<int32_t> kinds;
  std::vector<std::string> merges;
  std::string model = "gpt2";
  std::string pre = "smollm";

  // Tokens 0..255 are the bytes, but byte 4 has none; then one for each merge; then three special.
  TinyVocabulary() {
    for (int value = 0; value < 256; ++value) {
      tokens.push_back(to_byte_alphabet(std::string(1, static_cast<char>(value))));
    }
    tokens[4] = "?absent?";
    const std::string space = to_byte_alphabet(" ");
    const std::string newline = to_byte_alphabet("\n");
    merges = {
        space + " t",
        "h e",
        space + "t he",
        "l l",
        "he ll",
        "hell o",
        "1 2",
        space + " " + space,
        "\u00c3 \u00a9",
        "' s",
        "a a",
        "aa aa",
        newline + " " + newline};
    for (const std::string& merge : merges) {
      std::string joined = merge;
      tokens.push_back(joined.erase(joined.find(' '), 1));
    }
    kinds.assign(tokens.size(), kNormal);
    for (const auto& [text, kind] : std::initializer_list<std::pair<const char*, int32_t>>{
             {"<|im_start|>", kControl}, {"<|im_end|>", kControl}, {"<think>", kUserDefined}}) {
      tokens.emplace_back(text);
      kinds.push_back(kind);
    }
  }

  GgufBuilder builder() const {
    GgufBuilder out;
    out.text("tokenizer.ggml.model", model).text("tokenizer.ggml.pre", pre);
    out.texts("tokenizer.ggml.tokens", tokens).texts("tokenizer.ggml.merges", merges);
    out.array("tokenizer.ggml.token_type", GgufType::kInt32, kinds);
    return out;
  }
};
constexpr int32_t kImStart = 269;
constexpr int32_t kImEnd = 270;
constexpr int32_t kThink = 271;

Result<Tokenizer> build(const GgufBuilder& builder) {
  const Bytes bytes = builder.build();
  PAVO_ASSIGN_OR_RETURN(const GgufFile file, GgufFile::parse(bytes));
  return Tokenizer::from_gguf(file);  // owns all it needs: the file goes away here
}

Tokenizer tiny() {
  auto tokenizer = build(TinyVocabulary().builder());
  EXPECT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  return std::move(*tokenizer);
}

Ids encode(const Tokenizer& tokenizer, std::string_view text, EncodeOptions options = {}) {
  auto ids = tokenizer.encode(text, options);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return ids.ok() ? *ids : Ids();
}

// Expected ids: the same vocabulary given to Hugging Face's `tokenizers` 0.23 (models.BPE behind
// pre_tokenizers.Digits(individual_digits=True) and ByteLevel(add_prefix_space=False)).
TEST(Tokenizer, EncodesLikeTheOriginalImplementation) {
  const Tokenizer tokenizer = tiny();
  const std::pair<std::string_view, Ids> cases[] = {
      {"hello", {261}},
      {"hello the  the", {261, 258, 32, 258}},
      {"12 he's 3", {49, 50, 32, 257, 265, 32, 51}},
      {"aaaaaaa", {267, 266, 97}},
      {"caf\u00e9\n\n\nhell", {99, 97, 102, 264, 268, 10, 260}},
      {"\u00bd \u06612  x", {194, 189, 32, 217, 161, 50, 32, 32, 120}},
      {"\u3000the", {227, 128, 128, 116, 257}},
      {"", {}}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(encode(tokenizer, text), expected) << text;
  }
}

TEST(Tokenizer, CountsBytesThatTheVocabularyLacks) {
  const Tokenizer tokenizer = tiny();
  size_t dropped = 9;
  const auto ids = tokenizer.encode("\x04hello \x04", {}, &dropped);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(*ids, (Ids{261, 32}));  // the original implementation drops them too
  EXPECT_EQ(dropped, 2u);
  ASSERT_TRUE(tokenizer.encode("hello", {}, &dropped).ok());
  EXPECT_EQ(dropped, 0u);
}

TEST(Tokenizer, ReadsSpecialTokensOnlyWhenAsked) {
  const Tokenizer tokenizer = tiny();
  const std::string text = "<|im_start|>hello<think><|im_end|>";
  const Ids parsed = encode(tokenizer, text, {.parse_special = true});
  EXPECT_EQ(parsed, (Ids{kImStart, 261, kThink, kImEnd}));
  const Ids plain = encode(tokenizer, text);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), kImStart), 0);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), kThink), 1) << "user-defined ones always";
  EXPECT_EQ(tokenizer.decode(plain), text);
  EXPECT_EQ(tokenizer.decode(parsed), "hello<think>");
  EXPECT_EQ(tokenizer.decode(parsed, /*with_control=*/true), text);
  EXPECT_EQ(tokenizer.find("<|im_end|>"), kImEnd);
  EXPECT_EQ(tokenizer.find("nothing"), std::nullopt);
}

TEST(Tokenizer, AddsBeginAndEndAsTheModelSays) {
  GgufBuilder builder = TinyVocabulary().builder();
  builder.u32("tokenizer.ggml.bos_token_id", kImStart).u32("tokenizer.ggml.eos_token_id", 261);
  builder.scalar<uint8_t>("tokenizer.ggml.add_bos_token", GgufType::kBool, 1);
  builder.scalar<uint8_t>("tokenizer.ggml.add_eos_token", GgufType::kBool, 1);
  const auto tokenizer = build(builder);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  EXPECT_EQ(encode(*tokenizer, "a", {.add_special = true}), (Ids{kImStart, 97, 261}));
  EXPECT_EQ(encode(*tokenizer, "a"), (Ids{97}));
  EXPECT_TRUE(tokenizer->is_eog(261)) << "by its key";
  EXPECT_TRUE(tokenizer->is_eog(kImEnd)) << "by its text";
  EXPECT_FALSE(tokenizer->is_eog(kImStart));
  EXPECT_FALSE(tokenizer->is_eog(-1));
}

TEST(Tokenizer, LooksWholePiecesUpWhereTheRuleSaysSo) {
  TinyVocabulary vocabulary;
  vocabulary.tokens[4] = "xyz";  // no merge leads to it
  EXPECT_EQ(encode(*build(vocabulary.builder()), "xyz"), (Ids{120, 121, 122}));
  vocabulary.pre = "llama-bpe";
  EXPECT_EQ(encode(*build(vocabulary.builder()), "xyz"), (Ids{4}));
}

// Valid and invalid UTF-8 mixed at random come back byte by byte.
TEST(Tokenizer, RoundTripsAnyBytes) {
  TinyVocabulary vocabulary;
  vocabulary.tokens[4] = to_byte_alphabet("\x04");
  const auto tokenizer = build(vocabulary.builder());
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  std::mt19937 random(7);
  const std::string_view parts[] = {
      "hello",
      " the",
      "\xff",
      "\xe2\x82",
      "\xed\xa0\x80",
      "\u20ac",
      "\n\n",
      std::string_view("\0", 1)};
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (auto i = random() % 12; i > 0; --i) {
      const auto pick = random() % 16;
      text += pick < std::size(parts) ? std::string(parts[pick])
                                      : std::string(1, static_cast<char>(random() % 256));
    }
    ASSERT_EQ(tokenizer->decode(encode(*tokenizer, text)), text) << "round " << round;
  }
}

// Pieces of a quarter megabyte, where a quadratic step would take minutes.
TEST(Tokenizer, TakesLongPiecesInStride) {
  const Tokenizer tokenizer = tiny();
  constexpr size_t kBytes = 1 << 18;
  EXPECT_EQ(encode(tokenizer, std::string(kBytes, 'a')).size(), kBytes / 4);
  for (const char byte : {' ', '\n', '!', '1', '\xff', '<'}) {
    const std::string text(kBytes, byte);
    EXPECT_EQ(tokenizer.decode(encode(tokenizer, text, {.parse_special = true})), text);
  }
}

TEST(Tokenizer, DecodesIdsOutOfRangeToNothing) {
  const Tokenizer tokenizer = tiny();
  EXPECT_EQ(tokenizer.decode(Ids{-1, 261, 272, INT32_MAX, INT32_MIN}), "hello");
}

TEST(StreamDecoder, HoldsIncompleteCharactersBack) {
  const Tokenizer tokenizer = tiny();
  StreamDecoder stream(tokenizer);
  EXPECT_EQ(stream.next('h'), "h");
  EXPECT_EQ(stream.next(0xe2), "");
  EXPECT_EQ(stream.next(0x82), "");
  EXPECT_EQ(stream.next(0xac), "\u20ac");
  EXPECT_EQ(stream.next(0xff), "\ufffd");
  EXPECT_EQ(stream.next(0xe2), "");
  EXPECT_EQ(stream.next('x'), "\ufffdx");
  EXPECT_EQ(stream.next(kImEnd), "") << "control tokens are not shown";
  EXPECT_EQ(stream.next(0xf0), "");
  EXPECT_EQ(stream.finish(), "\ufffd");
  EXPECT_EQ(stream.finish(), "");
  StreamDecoder with_control(tokenizer, /*with_control=*/true);
  EXPECT_EQ(with_control.next(kImEnd), "<|im_end|>");
}

void expect_error(const GgufBuilder& builder, Code code, const std::string& part) {
  const auto tokenizer = build(builder);
  ASSERT_FALSE(tokenizer.ok()) << "expected an error about " << part;
  EXPECT_EQ(tokenizer.status().code(), code);
  EXPECT_TRUE(contains(tokenizer.status().message(), part));
}

TEST(Tokenizer, NamesWhatIsWrongWithTheFile) {
  const auto changed = [](const std::function<void(TinyVocabulary*)>& change) {
    TinyVocabulary vocabulary;
    change(&vocabulary);
    return vocabulary.builder();
  };
  expect_error(GgufBuilder(), Code::kInvalidFile, "tokenizer.ggml.model");
  expect_error(
      GgufBuilder().text("tokenizer.ggml.model", "gpt2"), Code::kInvalidFile, "tokenizer.ggml.pre");
  expect_error(changed([](auto* v) { v->model = "llama"; }), Code::kUnsupported, "found 'llama'");
  expect_error(changed([](auto* v) { v->pre = "default"; }), Code::kUnsupported, "found 'default'");
  expect_error(
      changed([](auto* v) { v->kinds.pop_back(); }),
      Code::kInvalidFile,
      "tokenizer.ggml.token_type");
  expect_error(
      changed([](auto* v) { v->kinds[7] = 99; }), Code::kInvalidFile, "token 7: expected a type");
  expect_error(
      changed([](auto* v) { v->tokens.clear(), v->kinds.clear(); }),
      Code::kInvalidFile,
      "tokenizer.ggml.tokens");
  for (const char* merge : {"ab", " ab", "ab ", "", "a zzz", "b b"}) {
    expect_error(
        changed([&](auto* v) { v->merges[3] = merge; }), Code::kInvalidFile, "merges': merge 3");
  }
  expect_error(
      TinyVocabulary().builder().u32("tokenizer.ggml.eos_token_id", 272),
      Code::kInvalidFile,
      "'tokenizer.ggml.eos_token_id': expected an id below the 272 tokens, found 272");
}

TEST(Tokenizer, SaysThatHubDirectoriesHaveNone) {
  const std::string path = PAVO_SHARED_DIR "/reference-models/llama-hs128";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path << " is not there";
  }
  const auto source = ModelSource::open(path);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const auto tokenizer = Tokenizer::load(*source);
  EXPECT_EQ(tokenizer.status().code(), Code::kUnsupported);
  EXPECT_TRUE(contains(tokenizer.status().message(), "tokenizer.json"));
}

// ---- Published vocabularies, where they are at hand ----

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class PublishedVocabulary : public ::testing::TestWithParam<const char*> {};

// .inp: texts between marker lines; .out: a line of ids for each.
TEST_P(PublishedVocabulary, GivesItsReferenceIds) {
  const std::string path =
      std::string(PAVO_SHARED_DIR "/tokenizers/ggml-vocab-") + GetParam() + ".gguf";
  if (!std::filesystem::exists(path)) {
    GTEST_SKIP() << path << " is not there";
  }
  const auto file = GgufFile::open(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const auto tokenizer = Tokenizer::from_gguf(*file);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();

  constexpr std::string_view kMarker = "\n__ggml_vocab_test__\n";
  const std::string texts = read_file(path + ".inp");
  std::istringstream lines(read_file(path + ".out"));
  size_t begin = 0;
  size_t checked = 0;
  for (std::string line; std::getline(lines, line); ++checked) {
    const size_t end = std::min(texts.find(kMarker, begin), texts.size());
    ASSERT_LE(begin, texts.size()) << "fewer texts than lines of ids";
    std::istringstream numbers(line);
    const Ids expected(std::istream_iterator<int32_t>(numbers), {});
    const std::string text = texts.substr(begin, end - begin);
    EXPECT_EQ(encode(*tokenizer, text), expected) << text;
    if (std::string(GetParam()) != "deepseek-coder") {  // some of its tokens read like bytes
      EXPECT_EQ(tokenizer->decode(expected), text);
    }
    begin = end + kMarker.size();
  }
  EXPECT_GE(checked, 40u);
}
INSTANTIATE_TEST_SUITE_P(
    Tokenizer, PublishedVocabulary, ::testing::Values("gpt-2", "deepseek-coder", "falcon"));

// Expected ids: Hugging Face's `tokenizers` with the same vocabulary, as above.
TEST(Tokenizer, EncodesWithSmolLm2) {
  const char* path = std::getenv("PAVO_TEST_SMOLLM2");
  if (path == nullptr) {
    GTEST_SKIP() << "PAVO_TEST_SMOLLM2 does not name the model file";
  }
  const auto source = ModelSource::open(path);
  ASSERT_TRUE(source.ok()) << source.status().message();
  const auto tokenizer = Tokenizer::load(*source);
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status().message();
  const std::pair<std::string_view, Ids> cases[] = {
      {"Hello, world!", {19556, 28, 905, 17}},
      {"The capital of France is Paris.", {504, 3575, 282, 4649, 314, 7042, 30}},
      {"  two  spaces\n\n\tand a tab", {216, 827, 216, 5600, 1116, 197, 397, 253, 10147}},
      {"1234567 3.14", {33, 34, 35, 36, 37, 38, 39, 216, 35, 30, 33, 36}},
      {"na\u00efve caf\u00e9 \u65e5\u672c\u8a9e \U0001f999",
       {3546, 46494, 37366, 17097, 241, 115, 40993, 179, 120, 248, 15107, 116, 243}},
      {"don't we'll I'M", {12420, 982, 392, 3060, 339, 23, 61}},
      {"<|im_start|>user\nHi<|im_end|>\n", {1, 4093, 198, 26843, 2, 198}},
      {"def f(x):\n    return x ** 2\n",
       {1604, 275, 24, 104, 727, 472, 1003, 1792, 1903, 216, 34, 198}},
      {"\u3000\u00a0x\u2028", {12109, 218, 15442, 104, 321, 118}}};
  for (const auto& [text, expected] : cases) {
    EXPECT_EQ(encode(*tokenizer, text, {.parse_special = true}), expected) << text;
    EXPECT_EQ(tokenizer->decode(expected, /*with_control=*/true), text);
  }
  EXPECT_TRUE(tokenizer->is_eog(0));
  EXPECT_FALSE(tokenizer->is_eog(1));
  EXPECT_TRUE(tokenizer->is_eog(2));
}

}  // namespace
}  // namespace pavo::llm
