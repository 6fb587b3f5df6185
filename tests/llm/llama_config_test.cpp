#include "llm/models/llama_config.h"

#include <filesystem>
#include <functional>
#include <limits>

#include <nlohmann/json.hpp>

#include "tests/llm/gguf_builder.h"
#include "tests/llm/temp_dir.h"

namespace pavo::llm {
namespace {

using nlohmann::json;
using testing::Bytes;
using testing::contains;
using testing::GgufBuilder;
using testing::TempDir;

using Shapes = std::vector<std::pair<std::string, std::vector<uint64_t>>>;

// Innermost first, as GGUF has them: hidden 8, 4 heads of 6, 2 K/V heads, ffn 10, vocabulary 5.
Shapes gguf_shapes() {
  return {
      {"token_embd.weight", {8, 5}},
      {"output_norm.weight", {8}},
      {"blk.0.attn_norm.weight", {8}},
      {"blk.0.attn_q.weight", {8, 24}},
      {"blk.0.attn_k.weight", {8, 12}},
      {"blk.0.attn_v.weight", {8, 12}},
      {"blk.0.attn_output.weight", {24, 8}},
      {"blk.0.ffn_norm.weight", {8}},
      {"blk.0.ffn_gate.weight", {8, 10}},
      {"blk.0.ffn_up.weight", {8, 10}},
      {"blk.0.ffn_down.weight", {10, 8}}};
}

std::vector<std::pair<std::string, uint32_t>> gguf_integers() {
  return {
      {"llama.embedding_length", 8},
      {"llama.block_count", 1},
      {"llama.attention.head_count", 4},
      {"llama.attention.head_count_kv", 2},
      {"llama.attention.key_length", 6},
      {"llama.attention.value_length", 6},
      {"llama.feed_forward_length", 10},
      {"llama.context_length", 64}};
}

// A model file of those parts; `change` adds to or replaces them.
Result<ModelSource> open_gguf(
    const TempDir& dir,
    const std::vector<std::pair<std::string, uint32_t>>& integers,
    const Shapes& shapes,
    const std::function<void(GgufBuilder*)>& change = {}) {
  GgufBuilder builder;
  builder.text("general.architecture", "llama");
  for (const auto& [key, value] : integers) {
    builder.u32(key, value);
  }
  builder.f32("llama.attention.layer_norm_rms_epsilon", 1e-5f);
  for (const auto& [name, dims] : shapes) {
    builder.f32_tensor(name, dims);
  }
  if (change) {
    change(&builder);
  }
  return ModelSource::open(dir.write("model.gguf", builder.build()));
}

void expect_config_error(const Result<LlamaConfig>& config, Code code, const std::string& part) {
  ASSERT_FALSE(config.ok()) << "expected an error about " << part;
  EXPECT_EQ(config.status().code(), code) << config.status().message();
  EXPECT_TRUE(contains(config.status().message(), part));
}

TEST(LlamaConfig, ReadsGguf) {
  const TempDir dir;
  const auto source = open_gguf(dir, gguf_integers(), gguf_shapes(), [](GgufBuilder* builder) {
    builder->f32("llama.rope.freq_base", 100000.0f);
  });
  ASSERT_TRUE(source.ok()) << source.status().message();
  const auto config = read_llama_config(*source);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->vocab_size, 5);
  EXPECT_EQ(config->hidden_size, 8);
  EXPECT_EQ(config->layers, 1);
  EXPECT_EQ(config->heads, 4);
  EXPECT_EQ(config->kv_heads, 2);
  EXPECT_EQ(config->head_dim, 6);
  EXPECT_EQ(config->ffn_size, 10);
  EXPECT_EQ(config->context_length, 64);
  EXPECT_EQ(config->sliding_window, 0);
  EXPECT_FLOAT_EQ(static_cast<float>(config->norm_eps), 1e-5f);
  EXPECT_EQ(config->rope.theta, 100000.0);
  EXPECT_EQ(config->rope.dims, 6);
  EXPECT_EQ(config->rope.pairs, RopePairs::kInterleaved);
  EXPECT_EQ(config->rope.scaling, RopeScaling::kNone);

  const auto weights = bind_llama_weights(*source, *config);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_EQ(weights->output, weights->token_embd) << "a missing head is the embedding";
  EXPECT_EQ(weights->layers.at(0).attn_output->shape, (std::vector<int64_t>{8, 24}));
  EXPECT_EQ(weights->layers.at(0).attn_q_bias, nullptr);
}

TEST(LlamaConfig, ReadsGgufRopeScaling) {
  const TempDir dir;
  const auto linear = open_gguf(dir, gguf_integers(), gguf_shapes(), [](GgufBuilder* builder) {
    builder->text("llama.rope.scaling.type", "linear").f32("llama.rope.scaling.factor", 4.0f);
  });
  auto config = read_llama_config(*linear);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(config->rope.factor, 4.0);

  const auto factors = open_gguf(dir, gguf_integers(), gguf_shapes(), [](GgufBuilder* builder) {
    builder->f32_tensor("rope_freqs.weight", {3});
  });
  config = read_llama_config(*factors);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->rope.scaling, RopeScaling::kFactors);
  EXPECT_TRUE(config->rope.factors.empty());
  const auto weights = bind_llama_weights(*factors, *config);
  ASSERT_TRUE(weights.ok()) << weights.status().message();
  EXPECT_EQ(weights->rope_factors, factors->tensors().find("rope_freqs.weight"));

  const auto yarn = open_gguf(dir, gguf_integers(), gguf_shapes(), [](GgufBuilder* builder) {
    builder->text("llama.rope.scaling.type", "yarn");
  });
  expect_config_error(read_llama_config(*yarn), Code::kUnsupported, "llama.rope.scaling.type");
}

TEST(LlamaConfig, NamesBadGgufKeys) {
  const struct {
    const char* key;
    uint32_t value;
    const char* part;
  } cases[] = {
      {"llama.embedding_length", 0, "llama.embedding_length: expected an integer from 1"},
      {"llama.block_count", 4294967295u, "found 4294967295"},
      {"llama.attention.head_count", 0, "llama.attention.head_count"},
      {"llama.attention.head_count_kv", 3, "expected a divisor of 4 heads, found 3"},
      {"llama.attention.key_length", 1u << 30, "llama.attention.key_length"},
      {"llama.attention.value_length", 8, "llama.attention.value_length: expected the key length"},
      {"llama.feed_forward_length", 0, "llama.feed_forward_length"},
      {"llama.context_length", 0, "llama.context_length"},
      {"llama.rope.dimension_count", 5, "llama.rope.dimension_count: expected an even number"},
      {"llama.rope.dimension_count", 8, "llama.rope.dimension_count: expected an even number"}};
  for (const auto& [key, value, part] : cases) {
    auto integers = gguf_integers();
    std::erase_if(integers, [&key = key](const auto& item) { return item.first == key; });
    integers.emplace_back(key, value);
    const TempDir dir;
    const auto source = open_gguf(dir, integers, gguf_shapes());
    ASSERT_TRUE(source.ok()) << source.status().message();
    expect_config_error(read_llama_config(*source), Code::kInvalidFile, part);
  }
}

TEST(LlamaConfig, NamesMissingAndUnsupportedGgufKeys) {
  const TempDir dir;
  auto integers = gguf_integers();
  integers.erase(integers.begin());
  const auto missing = open_gguf(dir, integers, gguf_shapes());
  expect_config_error(
      read_llama_config(*missing),
      Code::kInvalidFile,
      "llama.embedding_length: expected an integer from 1 to 1048576, found no such key");
  const auto experts = open_gguf(dir, gguf_integers(), gguf_shapes(), [](GgufBuilder* builder) {
    builder->u32("llama.expert_count", 8);
  });
  expect_config_error(read_llama_config(*experts), Code::kUnsupported, "llama.expert_count");
  const auto nan = open_gguf(dir, gguf_integers(), gguf_shapes(), [](GgufBuilder* builder) {
    builder->f32("llama.rope.freq_base", std::numeric_limits<float>::quiet_NaN());
  });
  expect_config_error(read_llama_config(*nan), Code::kInvalidFile, "llama.rope.freq_base");
}

TEST(LlamaWeights, NamesMissingMisshapenAndForeignTensors) {
  const TempDir dir;
  const auto bind_error = [&](const Shapes& shapes,
                              const std::function<void(GgufBuilder*)>& change = {}) {
    const auto source = open_gguf(dir, gguf_integers(), shapes, change);
    EXPECT_TRUE(source.ok()) << source.status().message();
    const auto config = read_llama_config(*source);
    EXPECT_TRUE(config.ok()) << config.status().message();
    return bind_llama_weights(*source, *config).status();
  };
  Shapes shapes = gguf_shapes();
  shapes.pop_back();
  EXPECT_TRUE(contains(bind_error(shapes).message(), "'blk.0.ffn_down.weight': expected in the"));
  shapes.push_back({"blk.0.ffn_down.weight", {8, 10}});
  EXPECT_TRUE(contains(
      bind_error(shapes).message(),
      "'blk.0.ffn_down.weight': expected shape [8, 10], found [10, 8]"));
  shapes = gguf_shapes();
  shapes.push_back({"blk.0.attn_q_norm.weight", {6}});
  EXPECT_TRUE(contains(bind_error(shapes).message(), "'blk.0.attn_q_norm.weight': expected no"));
  shapes = gguf_shapes();
  shapes.push_back({"blk.0.attn_q.bias", {7}});
  EXPECT_TRUE(contains(
      bind_error(shapes).message(), "'blk.0.attn_q.bias': expected shape [24], found [7]"));
  const Status unknown = bind_error(gguf_shapes(), [](GgufBuilder* builder) {
    builder->tensor("output.weight", {8, 5}, 77, Bytes(64));
  });
  EXPECT_EQ(unknown.code(), Code::kUnsupported);
  EXPECT_TRUE(contains(unknown.message(), "'output.weight'"));
  EXPECT_TRUE(contains(unknown.message(), "ggml type 77"));
}

// ---- Hub directories ----

json hub_config() {
  return {
      {"architectures", {"LlamaForCausalLM"}},
      {"vocab_size", 5},
      {"hidden_size", 8},
      {"num_hidden_layers", 1},
      {"num_attention_heads", 4},
      {"num_key_value_heads", 2},
      {"head_dim", 6},
      {"intermediate_size", 10},
      {"max_position_embeddings", 64},
      {"rms_norm_eps", 1e-6},
      {"rope_theta", 50000}};
}

Result<LlamaConfig> read_hub(const json& config) {
  const TempDir dir;
  dir.write("config.json", config.dump());
  const std::vector<float> one(1);
  EXPECT_TRUE(write_safetensors_f32(dir.path() + "/model.safetensors", "x", 1, 1, one).ok());
  PAVO_ASSIGN_OR_RETURN(const ModelSource source, ModelSource::open(dir.path()));
  return read_llama_config(source);
}

TEST(LlamaConfig, ReadsHub) {
  const auto config = read_hub(hub_config());
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->head_dim, 6);
  EXPECT_EQ(config->rope.theta, 50000.0);
  EXPECT_EQ(config->rope.pairs, RopePairs::kHalves);
  EXPECT_EQ(config->sliding_window, 0);
  EXPECT_FALSE(config->tie_embeddings);
}

TEST(LlamaConfig, ReadsHubVariants) {
  json object = hub_config();
  object["head_dim"] = nullptr;
  object.erase("num_key_value_heads");
  object["tie_word_embeddings"] = true;
  auto config = read_hub(object);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->head_dim, 2);
  EXPECT_EQ(config->kv_heads, 4);
  EXPECT_TRUE(config->tie_embeddings);

  object = hub_config();
  object["architectures"] = {"MistralForCausalLM"};
  object["sliding_window"] = 32;
  EXPECT_EQ(read_hub(object)->sliding_window, 32);
  object["sliding_window"] = nullptr;
  EXPECT_EQ(read_hub(object)->sliding_window, 0);
  object.erase("sliding_window");
  EXPECT_EQ(read_hub(object)->sliding_window, 4096);

  object = hub_config();
  object["rope_scaling"] = {{"type", "linear"}, {"factor", 2.5}};
  config = read_hub(object);
  ASSERT_TRUE(config.ok()) << config.status().message();
  EXPECT_EQ(config->rope.scaling, RopeScaling::kLinear);
  EXPECT_EQ(config->rope.factor, 2.5);
}

TEST(LlamaConfig, NamesBadHubKeys) {
  const struct {
    const char* key;
    json value;
    Code code;
    const char* part;
  } cases[] = {
      {"hidden_size", -8, Code::kInvalidFile, "config.json: hidden_size: expected an integer"},
      {"hidden_size", "8", Code::kInvalidFile, "found '8'"},
      {"hidden_size", 1e300, Code::kInvalidFile, "hidden_size"},
      {"hidden_size", 18446744073709551615u, Code::kInvalidFile, "hidden_size"},
      {"num_hidden_layers", json::array(), Code::kInvalidFile, "found array"},
      {"num_key_value_heads", 3, Code::kInvalidFile, "num_key_value_heads: expected a divisor"},
      {"rms_norm_eps", -1.0, Code::kInvalidFile, "rms_norm_eps"},
      {"hidden_act", "gelu", Code::kUnsupported, "hidden_act: expected 'silu', found 'gelu'"},
      {"tie_word_embeddings", 1, Code::kInvalidFile, "tie_word_embeddings: expected true"},
      {"quantization_config", json::object(), Code::kUnsupported, "quantization_config"},
      {"rope_scaling", {{"rope_type", "yarn"}}, Code::kUnsupported, "rope_scaling: rope_type"},
      {"rope_scaling", {{"type", "linear"}}, Code::kInvalidFile, "rope_scaling: factor"},
      {"rope_parameters", {{"rope_theta", 0}}, Code::kInvalidFile, "rope_parameters: rope_theta"},
      {"architectures", json::array({"OPTForCausalLM"}), Code::kUnsupported, "'OPTForCausalLM'"},
      {"architectures", "LlamaForCausalLM", Code::kInvalidFile, "architectures"}};
  for (const auto& [key, value, code, part] : cases) {
    json object = hub_config();
    object[key] = value;
    expect_config_error(read_hub(object), code, part);
  }
}

// Expected values: the formula of Llama 3.1's release notes evaluated separately in Python.
TEST(LlamaConfig, ComputesLlama3Factors) {
  const auto factors = llama3_rope_factors(500000.0, 64, 32.0, 1.0, 4.0, 8192);
  ASSERT_EQ(factors.size(), 32u);
  EXPECT_FLOAT_EQ(factors[0], 1.0f);
  EXPECT_FLOAT_EQ(factors[14], 1.0f);
  EXPECT_NEAR(factors[15], 1.651329f, 2e-6f);
  EXPECT_NEAR(factors[16], 3.292262f, 4e-6f);
  EXPECT_NEAR(factors[17], 9.666729f, 1e-5f);
  EXPECT_FLOAT_EQ(factors[18], 32.0f);
  EXPECT_FLOAT_EQ(factors[31], 32.0f);
}

// ---- Published checkpoints, where they are at hand ----

TEST(LlamaWeights, BindsReferenceModels) {
  const std::string root = PAVO_SHARED_DIR "/reference-models/";
  if (!std::filesystem::exists(root)) {
    GTEST_SKIP() << root << " is not there";
  }
  const struct {
    const char* name;
    int64_t head_dim;
    bool tied;
    RopeScaling scaling;
  } cases[] = {
      {"llama-hs128", 128, false, RopeScaling::kNone},
      {"llama-hs256-falcon3", 256, false, RopeScaling::kNone},
      {"llama-hs64-llama3rope", 64, true, RopeScaling::kFactors},
      {"mistral-hs128", 128, false, RopeScaling::kNone}};
  for (const auto& [name, head_dim, tied, scaling] : cases) {
    const auto source = ModelSource::open(root + name);
    ASSERT_TRUE(source.ok()) << source.status().message();
    const auto config = read_llama_config(*source);
    ASSERT_TRUE(config.ok()) << config.status().message();
    EXPECT_EQ(config->head_dim, head_dim) << name;
    EXPECT_EQ(config->rope.scaling, scaling) << name;
    EXPECT_EQ(config->sliding_window, 0) << name;
    const auto weights = bind_llama_weights(*source, *config);
    ASSERT_TRUE(weights.ok()) << name << ": " << weights.status().message();
    EXPECT_EQ(weights->output == weights->token_embd, tied) << name;
  }
}

}  // namespace
}  // namespace pavo::llm
