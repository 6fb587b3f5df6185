#include "llm/safetensors.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>

#include "tests/llm/gguf_builder.h"
#include "tests/llm/temp_dir.h"

namespace pavo::llm {
namespace {

using testing::append;
using testing::append_text;
using testing::Bytes;
using testing::contains;
using testing::TempDir;

Bytes file_of(std::string_view header, size_t data_bytes) {
  Bytes out;
  append_text(&out, header);
  out.resize(out.size() + data_bytes);
  return out;
}

void expect_invalid(const Bytes& bytes, const std::string& part) {
  const auto tensors = parse_safetensors(bytes);
  ASSERT_FALSE(tensors.ok()) << "expected an error about " << part;
  EXPECT_EQ(tensors.status().code(), Code::kInvalidFile);
  EXPECT_TRUE(contains(tensors.status().message(), part));
}

constexpr std::string_view kTwoTensors =
    R"({"__metadata__":{"format":"pt"},)"
    R"("a":{"dtype":"BF16","shape":[2,3],"data_offsets":[4,16]},)"
    R"("n":{"dtype":"I64","shape":[],"data_offsets":[16,24]}})";

TEST(Safetensors, ReadsTensors) {
  const Bytes bytes = file_of(kTwoTensors, 24);
  const auto tensors = parse_safetensors(bytes);
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  ASSERT_EQ(tensors->size(), 2u);
  const FileTensor& a = (*tensors)[0];
  EXPECT_EQ(a.name, "a");
  EXPECT_EQ(a.type, PAVO_TYPE_BF16);
  EXPECT_EQ(a.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(a.size_bytes, 12u);
  EXPECT_EQ(a.data, bytes.data() + bytes.size() - 20);
  EXPECT_EQ((*tensors)[1].type, PAVO_TYPE_NONE);
  EXPECT_EQ((*tensors)[1].type_name, "I64");
}

TEST(Safetensors, RefusesEveryTruncation) {
  const Bytes whole = file_of(kTwoTensors, 24);
  for (size_t length = 0; length < whole.size(); ++length) {
    const Bytes cut(whole.begin(), whole.begin() + length);
    ASSERT_FALSE(parse_safetensors(cut).ok()) << length;
  }
}

TEST(Safetensors, NamesWhatIsWrong) {
  Bytes huge;
  append(&huge, std::numeric_limits<uint64_t>::max());
  expect_invalid(huge, "header length");
  expect_invalid(file_of("nonsense", 0), "header: expected JSON");
  expect_invalid(file_of("[1]", 0), "header: expected a JSON object, found array");
  expect_invalid(file_of(std::string(100000, '['), 0), "header: expected JSON nested up to 32");
  expect_invalid(file_of(std::string((32 << 20) + 1, ' '), 0), "header: expected at most 33554432");
  expect_invalid(file_of(R"({"a":{},"a":{}})", 0), "'a' is there twice");
  expect_invalid(file_of(R"({"":{},"":{}})", 0), "'' is there twice");
  expect_invalid(file_of(R"({"a":1})", 0), "'a': expected an object, found number");
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& at) {
    return file_of(
        R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + at + "}}",
        8);
  };
  expect_invalid(one("3", "[1]", "[0,4]"), "'a': dtype: expected a string");
  expect_invalid(one("\"F32\"", "1", "[0,4]"), "'a': shape");
  expect_invalid(one("\"F32\"", "[-1]", "[0,4]"), "'a': shape");
  expect_invalid(one("\"F32\"", "[4294967296,4294967296]", "[0,4]"), "'a': shape");
  expect_invalid(one("\"F32\"", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), "'a': shape");
  expect_invalid(one("\"F32\"", "[1]", "[0]"), "'a': data_offsets: expected two sizes");
  expect_invalid(one("\"F32\"", "[1]", "[4,0]"), "found 4 to 0");
  expect_invalid(one("\"F32\"", "[1]", "[8,12]"), "within 8 data bytes, found 8 to 12");
  expect_invalid(one("\"F32\"", "[1]", "[0,8]"), "'a': expected 4 bytes for F32 [1], found");
  expect_invalid(one("\"F32\"", "[1]", "[0,18446744073709551615]"), "data_offsets");
}

// As many as a checkpoint of experts in one file has; a reader that searches all of them for each
// takes minutes.
TEST(Safetensors, ReadsManyTensorsInLinearTime) {
  constexpr size_t kTensors = 50'000;
  std::string header = "{";
  for (size_t i = 0; i < kTensors; ++i) {
    header += (i == 0 ? "\"" : ",\"") + std::to_string(i) +
              R"(":{"dtype":"F32","shape":[0],"data_offsets":[0,0]})";
  }
  const Bytes bytes = file_of(header + "}", 0);
  const auto start = std::chrono::steady_clock::now();
  const auto tensors = parse_safetensors(bytes);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(10));
  ASSERT_TRUE(tensors.ok()) << tensors.status().message();
  EXPECT_EQ(tensors->size(), kTensors);
}

TEST(Safetensors, RefusesOverlaps) {
  const TempDir dir;
  const std::string path = dir.write(
      "model.safetensors",
      file_of(
          R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
          R"("b":{"dtype":"F16","shape":[2],"data_offsets":[2,6]}})",
          6));
  const auto file = SafetensorsFiles::open_file(path);
  ASSERT_FALSE(file.ok());
  EXPECT_TRUE(contains(file.status().message(), "'a' and 'b': expected separate data"));
}

TEST(Safetensors, ReadsShards) {
  const TempDir dir;
  const auto shard = [](const char* name) {
    return file_of(
        std::string("{\"") + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4);
  };
  dir.write("one.safetensors", shard("a"));
  dir.write("two.safetensors", shard("b"));
  const auto open_with = [&](const std::string& weight_map) {
    dir.write("model.safetensors.index.json", "{\"weight_map\":" + weight_map + "}");
    return SafetensorsFiles::open_directory(dir.path());
  };
  const auto both = open_with(R"({"a":"one.safetensors","b":"two.safetensors"})");
  ASSERT_TRUE(both.ok()) << both.status().message();
  EXPECT_NE(both->tensors().find("a"), nullptr);
  EXPECT_NE(both->tensors().find("b"), nullptr);
  const std::pair<const char*, const char*> cases[] = {
      {R"({"a":"two.safetensors"})", "'a': expected in 'two.safetensors'"},
      {R"({"a":"three.safetensors"})", "No such file"},
      {R"({"a":"../one.safetensors"})", "name of a file in the same directory"},
      {R"({"a":7})", "name of a file in the same directory"},
      {"{}", "weight_map"},
      {"[]", "weight_map"}};
  for (const auto& [weight_map, part] : cases) {
    const auto opened = open_with(weight_map);
    ASSERT_FALSE(opened.ok()) << weight_map;
    EXPECT_TRUE(contains(opened.status().message(), part));
  }
}

TEST(SafetensorsWriter, WritesWhatTheReaderReads) {
  const TempDir dir;
  const std::string path = dir.path() + "/out.safetensors";
  const std::vector<float> values = {1.0f, -2.5f, 3.0f, 0.0f, 5.0f, 6.0f};
  dir.write("out.safetensors", "an older result");
  ASSERT_TRUE(write_safetensors_f32(path, "logits", 3, 2, values).ok());
  const auto file = SafetensorsFiles::open_file(path);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const FileTensor* logits = file->tensors().find("logits");
  ASSERT_NE(logits, nullptr);
  EXPECT_EQ(logits->type, PAVO_TYPE_F32);
  EXPECT_EQ(logits->shape, (std::vector<int64_t>{3, 2}));
  std::vector<float> found(values.size());
  ASSERT_EQ(logits->size_bytes, found.size() * sizeof(float));
  std::memcpy(found.data(), logits->data, logits->size_bytes);
  EXPECT_EQ(found, values);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(logits->data) % 8, 0u);
  // Nothing else is left in the directory.
  const auto entries = std::filesystem::directory_iterator(dir.path());
  EXPECT_EQ(std::distance(begin(entries), end(entries)), 1);
}

TEST(SafetensorsWriter, ReportsErrors) {
  const std::vector<float> values(6);
  const Status missing = write_safetensors_f32("/no/such/dir/x", "logits", 3, 2, values);
  EXPECT_EQ(missing.code(), Code::kIo);
  EXPECT_TRUE(contains(missing.message(), "/no/such/dir/x"));
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_EQ(write_safetensors_f32("/dev/null", "x", kHuge, 4, {}).code(), Code::kInvalidArgument);
  EXPECT_EQ(write_safetensors_f32("/dev/null", "x", 3, 3, values).code(), Code::kInvalidArgument);
  EXPECT_EQ(write_safetensors_f32("/dev/null", "x", -3, -2, values).code(), Code::kInvalidArgument);
  EXPECT_TRUE(write_safetensors_f32("/dev/null", "x", 3, 2, values).ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null")) << "devices are not replaced";
  EXPECT_EQ(write_safetensors_f32("/dev/full", "x", 3, 2, values).code(), Code::kIo);
}

}  // namespace
}  // namespace pavo::llm
