#include "llm/gguf.h"

#include <functional>
#include <limits>

#include "tests/llm/gguf_builder.h"
#include "tests/llm/temp_dir.h"

namespace pavo::llm {
namespace {

using testing::append;
using testing::append_text;
using testing::Bytes;
using testing::contains;
using testing::GgufBuilder;

// Parses a copy whose end is the end of an allocation, so that AddressSanitizer sees every read
// past it.
Result<GgufFile> parse_exact(const Bytes& bytes, Bytes* owned) {
  *owned = Bytes(bytes.begin(), bytes.end());
  return GgufFile::parse(*owned);
}

void expect_invalid(const Bytes& bytes, const std::string& part, Code code = Code::kInvalidFile) {
  Bytes owned;
  const auto file = parse_exact(bytes, &owned);
  ASSERT_FALSE(file.ok()) << "expected an error about " << part;
  EXPECT_EQ(file.status().code(), code);
  EXPECT_TRUE(contains(file.status().message(), part));
}

GgufBuilder small_file() {
  GgufBuilder builder;
  builder.text("general.architecture", "llama")
      .u32("answer", 42)
      .f32("half", 0.5f)
      .scalar<uint8_t>("yes", GgufType::kBool, 1)
      .scalar<uint64_t>("huge", GgufType::kUint64, std::numeric_limits<uint64_t>::max())
      .texts("words", {"a", "", "longer"})
      .array<int32_t>("ids", GgufType::kInt32, {-1, 2})
      .f32_tensor("matrix", {3, 2})
      .tensor("blocks", {32, 2}, 2, Bytes(2 * 18));
  return builder;
}

TEST(Gguf, ReadsTypedMetadata) {
  const Bytes bytes = small_file().build();
  const auto file = GgufFile::parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->version(), 3u);
  EXPECT_EQ(*file->get<std::string_view>("general.architecture"), "llama");
  EXPECT_EQ(*file->get<int64_t>("answer"), 42);
  EXPECT_EQ(*file->get<double>("half"), 0.5);
  EXPECT_EQ(*file->get<bool>("yes"), true);
  const std::vector<std::string_view> words = {"a", "", "longer"};
  EXPECT_EQ(*file->get<std::vector<std::string_view>>("words"), words);
  EXPECT_EQ(*file->get<std::vector<int64_t>>("ids"), (std::vector<int64_t>{-1, 2}));
  EXPECT_EQ(*file->get_or<int64_t>("missing", 7), 7);
}

TEST(Gguf, GettersNameKeyExpectedAndFoundType) {
  const Bytes bytes = small_file().build();
  const auto file = GgufFile::parse(bytes);
  ASSERT_TRUE(file.ok());
  const auto missing = file->get<int64_t>("missing");
  EXPECT_TRUE(contains(missing.status().message(), "'missing': expected an integer"));
  EXPECT_TRUE(contains(missing.status().message(), "no such key"));
  const auto wrong = file->get_or<bool>("answer", false);
  EXPECT_TRUE(contains(wrong.status().message(), "'answer': expected a bool, found uint32"));
  EXPECT_FALSE(file->get<int64_t>("huge").ok());
  const auto array = file->get<std::vector<int64_t>>("words");
  EXPECT_TRUE(contains(array.status().message(), "array of integers, found array of 3 string"));
  EXPECT_FALSE(file->get<std::string_view>("words").ok());
}

TEST(Gguf, ReadsTensorsOutermostFirst) {
  const Bytes bytes = small_file().build();
  const auto file = GgufFile::parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const FileTensor* matrix = file->tensors().find("matrix");
  ASSERT_NE(matrix, nullptr);
  EXPECT_EQ(matrix->type, PAVO_TYPE_F32);
  EXPECT_EQ(matrix->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(matrix->size_bytes, 24u);
  const FileTensor* blocks = file->tensors().find("blocks");
  ASSERT_NE(blocks, nullptr);
  EXPECT_EQ(blocks->type, PAVO_TYPE_Q4_0);
  EXPECT_EQ(blocks->data, bytes.data() + bytes.size() - 36);
  EXPECT_EQ(file->tensors().find("nothing"), nullptr);
}

TEST(Gguf, ReadsVersion2AndKeepsUnknownTensorTypes) {
  GgufBuilder builder;
  builder.version = 2;
  builder.tensor("odd", {5}, 77, Bytes(32)).tensor("ternary", {256}, 34, Bytes(54));
  const Bytes bytes = builder.build();
  const auto file = GgufFile::parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensors().find("odd")->type, PAVO_TYPE_NONE);
  EXPECT_EQ(file->tensors().find("odd")->type_name, "ggml type 77");
  EXPECT_EQ(file->tensors().find("ternary")->type, PAVO_TYPE_NONE);
  EXPECT_EQ(file->tensors().find("ternary")->type_name, "TQ1_0");
}

TEST(Gguf, ReadsNestedArraysAndRefusesDeepOnes) {
  const auto nested = [](int depth) {
    Bytes value;
    for (int i = 1; i < depth; ++i) {
      append(&value, uint32_t{9});
      append(&value, uint64_t{1});
    }
    append(&value, uint32_t{0});
    append(&value, uint64_t{2});
    append(&value, uint16_t{0x0201});
    return value;
  };
  const Bytes bytes = GgufBuilder().raw("deep", 9, nested(8)).u32("after", 1).build();
  const auto file = GgufFile::parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(*file->get<int64_t>("after"), 1);
  expect_invalid(GgufBuilder().raw("deep", 9, nested(9)).build(), "'deep'");
  expect_invalid(GgufBuilder().raw("deep", 9, nested(100000)).build(), "nested arrays");
}

// Every proper prefix of a small file is refused, and never read past.
TEST(Gguf, RefusesEveryTruncation) {
  const Bytes whole = small_file().build();
  for (size_t length = 0; length < whole.size(); ++length) {
    Bytes owned;
    const auto file = parse_exact(Bytes(whole.begin(), whole.begin() + length), &owned);
    ASSERT_FALSE(file.ok()) << length;
    ASSERT_EQ(file.status().code(), Code::kInvalidFile);
    ASSERT_TRUE(contains(file.status().message(), "gguf: "));
  }
}

// Every byte of the head set to extreme values: an answer or a status, nothing else.
TEST(Gguf, SurvivesEveryByteChanged) {
  const Bytes whole = small_file().build();
  for (size_t i = 0; i < whole.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      Bytes changed = whole;
      changed[i] = static_cast<std::byte>(value);
      Bytes owned;
      const auto file = parse_exact(changed, &owned);
      if (file.ok()) {
        for (const FileTensor& tensor : file->tensors().all()) {
          ASSERT_GE(tensor.data, owned.data());
          ASSERT_LE(tensor.data + tensor.size_bytes, owned.data() + owned.size());
        }
      }
    }
  }
}

TEST(Gguf, NamesWrongHeaders) {
  GgufBuilder builder = small_file();
  builder.magic = "GGML";
  expect_invalid(builder.build(), "magic: expected 'GGUF', found 'GGML'");
  builder.magic = "GGUF";
  builder.version = 1;
  expect_invalid(builder.build(), "version: expected 2 or 3, found 1");
  builder.version = 4;
  expect_invalid(builder.build(), "version: expected 2 or 3, found 4");
  builder.version = 0x03000000;
  expect_invalid(builder.build(), "big-endian");
}

TEST(Gguf, RefusesAbsurdCountsBeforeAllocating) {
  constexpr auto kHuge = std::numeric_limits<int64_t>::max();
  GgufBuilder builder = small_file();
  builder.tensor_count = kHuge;
  expect_invalid(builder.build(), "tensor count");
  builder.tensor_count = -1;
  builder.entry_count = kHuge;
  expect_invalid(builder.build(), "metadata count");

  Bytes huge_array;
  append(&huge_array, static_cast<uint32_t>(GgufType::kFloat64));
  append(&huge_array, uint64_t{1} << 61);  // times 8 wraps to 0
  expect_invalid(GgufBuilder().raw("numbers", 9, huge_array).build(), "'numbers'");
  Bytes huge_strings;
  append(&huge_strings, static_cast<uint32_t>(GgufType::kString));
  append(&huge_strings, std::numeric_limits<uint64_t>::max());
  append_text(&huge_strings, "one");
  expect_invalid(GgufBuilder().raw("tokens", 9, huge_strings).build(), "'tokens': string 1 of");
  Bytes long_text;
  append(&long_text, std::numeric_limits<uint64_t>::max());
  expect_invalid(GgufBuilder().raw("name", 8, long_text).build(), "'name'");
}

TEST(Gguf, RefusesBadMetadata) {
  expect_invalid(GgufBuilder().u32("twice", 1).f32("twice", 2).build(), "'twice' is there twice");
  expect_invalid(GgufBuilder().u32("", 1).build(), "metadata key 0");
  expect_invalid(GgufBuilder().raw("odd", 13, Bytes(8)).build(), "'odd': type 13");
  expect_invalid(
      GgufBuilder().scalar<uint8_t>("flag", GgufType::kBool, 2).build(), "'flag': expected a bool");
  for (const uint32_t alignment : {0u, 3u, 1u << 21}) {
    expect_invalid(GgufBuilder().u32("general.alignment", alignment).build(), "general.alignment");
  }
  expect_invalid(GgufBuilder().f32("general.alignment", 32).build(), "'general.alignment'");
  expect_invalid(
      GgufBuilder().scalar<uint16_t>("split.count", GgufType::kUint16, 3).build(),
      "'split.count'",
      Code::kUnsupported);
}

TEST(Gguf, HonoursTheAlignmentKey) {
  GgufBuilder builder;
  builder.alignment = 256;
  builder.u32("general.alignment", 256).f32_tensor("a", {1}).f32_tensor("b", {1});
  const Bytes bytes = builder.build();
  const auto file = GgufFile::parse(bytes);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(file->tensors().find("b")->data - file->tensors().find("a")->data, 256);
  EXPECT_EQ((file->tensors().find("a")->data - bytes.data()) % 256, 0);
}

TEST(Gguf, RefusesBadTensors) {
  const Bytes four(4);
  const auto one = [&](const std::vector<uint64_t>& dims, uint32_t type, int64_t offset) {
    return GgufBuilder().tensor("x", dims, type, Bytes(256), offset).build();
  };
  expect_invalid(one({1}, 0, 4), "'x': expected an offset aligned to 32, found 4");
  expect_invalid(one({1}, 0, 256), "ends after the file's");
  expect_invalid(one({1}, 0, int64_t{1} << 62), "offset 4611686018427387904 + size 4 ends after");
  expect_invalid(one({65}, 0, 0), "size 260 ends after the file's");
  expect_invalid(one({0}, 0, 0), "dimension 0");
  expect_invalid(one({}, 0, 0), "dimensions, found 0");
  expect_invalid(one(std::vector<uint64_t>(9, 1), 0, 0), "dimensions, found 9");
  expect_invalid(one({uint64_t{1} << 32, uint64_t{1} << 32}, 0, 0), "dimension 1");
  expect_invalid(one({uint64_t{1} << 63, 2}, 0, 0), "dimension 0");
  expect_invalid(one({33}, 2, 0), "multiple of 32 values for type Q4_0, found 33");
  expect_invalid(one({1}, 77, 512), "ends after the file's");
  expect_invalid(
      GgufBuilder().f32_tensor("x", {1}).f32_tensor("x", {1}).build(), "'x' is there twice");
  expect_invalid(
      GgufBuilder().tensor("a", {16}, 0, Bytes(64)).tensor("b", {1}, 0, four, 32).build(),
      "tensors 'a' and 'b': expected separate data");
  expect_invalid(GgufBuilder().tensor("", {1}, 0, four).build(), "tensor 0: name");
}

// A type of unknown size asks for no bytes, but its data must not begin past the end either.
TEST(Gguf, RefusesTensorsWithoutADataSection) {
  Bytes bytes = GgufBuilder().tensor("odd", {5}, 77, {}).build();
  while (bytes.size() % 32 == 0 || bytes.back() == std::byte{0}) {
    bytes.pop_back();  // the padding in front of the data, and the offset's zeros
  }
  bytes.resize(bytes.size() + 3 + 8);  // the rest of the type, and the offset
  expect_invalid(bytes, "'odd': data start");
}

TEST(Gguf, MakesHostileNamesPrintable) {
  expect_invalid(GgufBuilder().raw("\x1b[2J", 13, {}).build(), "'\\x1b[2J'");
}

}  // namespace
}  // namespace pavo::llm
