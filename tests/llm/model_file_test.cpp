#include "llm/model_file.h"

#include <nlohmann/json.hpp>

#include "tests/llm/gguf_builder.h"
#include "tests/llm/temp_dir.h"

namespace pavo::llm {
namespace {

using testing::contains;
using testing::GgufBuilder;
using testing::TempDir;

void expect_error(const std::string& path, const std::string& part) {
  const auto source = ModelSource::open(path);
  ASSERT_FALSE(source.ok()) << "expected an error about " << part;
  EXPECT_EQ(source.status().code(), Code::kInvalidFile);
  EXPECT_TRUE(contains(source.status().message(), part));
  EXPECT_TRUE(contains(source.status().message(), path));
}

TEST(ModelSource, OpensGguf) {
  const TempDir dir;
  GgufBuilder builder;
  builder.text("general.architecture", "llama").f32_tensor("x", {2});
  auto opened = ModelSource::open(dir.write("model.gguf", builder.build()));
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const FileTensor* tensor = opened->tensors().find("x");
  const ModelSource source = std::move(*opened);
  EXPECT_EQ(source.architecture(), "llama");
  EXPECT_NE(source.gguf(), nullptr);
  EXPECT_EQ(source.hub_config(), nullptr);
  EXPECT_EQ(source.tensors().find("x"), tensor) << "pointers outlive a move";
}

TEST(ModelSource, OpensHubDirectories) {
  const TempDir dir;
  dir.write("config.json", R"({"architectures":["LlamaForCausalLM"],"hidden_size":8})");
  const std::vector<float> values = {1.0f, 2.0f};
  ASSERT_TRUE(write_safetensors_f32(dir.path() + "/model.safetensors", "x", 1, 2, values).ok());
  const auto source = ModelSource::open(dir.path());
  ASSERT_TRUE(source.ok()) << source.status().message();
  EXPECT_EQ(source->architecture(), "LlamaForCausalLM");
  EXPECT_EQ(source->gguf(), nullptr);
  EXPECT_EQ(source->hub_config()->at("hidden_size"), 8);
  EXPECT_NE(source->tensors().find("x"), nullptr);
}

TEST(ModelSource, SaysWhatToTryInstead) {
  const TempDir dir;
  expect_error(dir.path() + "/missing.gguf", "No such file or directory");
  expect_error(dir.write("text.gguf", "once upon a time"), "magic: expected 'GGUF'");
  expect_error(dir.write("m.safetensors", "{}"), "give its directory");
  expect_error(dir.write("anonymous", GgufBuilder().u32("x", 1).build()), "'general.architecture'");
  const TempDir empty;
  expect_error(empty.path(), "no config.json");
  const std::string inside = empty.write("model.gguf", "");
  expect_error(empty.path(), "give the file's own path, as '" + inside + "'");
}

TEST(ModelSource, NamesBadConfigs) {
  const TempDir dir;
  const auto with = [&](const std::string& config) {
    dir.write("config.json", config);
    return dir.path();
  };
  expect_error(with(""), "empty");
  expect_error(with("{"), "config.json: expected JSON");
  expect_error(with("[]"), "config.json: expected a JSON object, found array");
  expect_error(with("{}"), "config.json: architectures");
  expect_error(with(R"({"architectures":[]})"), "config.json: architectures");
  expect_error(with(R"({"architectures":["A"],"architectures":["B"]})"), "is there twice");
  expect_error(with(R"({"architectures":["LlamaForCausalLM"]})"), "model.safetensors");
}

}  // namespace
}  // namespace pavo::llm
