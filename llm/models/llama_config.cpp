#include "llm/models/llama_config.h"

#include <cmath>
#include <numbers>

#include <nlohmann/json.hpp>

#include "llm/config_reader.h"
#include "llm/message.h"

namespace pavo::llm {
namespace {

using nlohmann::json;

// Far above every published model, far below where a product of two could overflow.
constexpr int64_t kMaxVocab = 1 << 24;
constexpr int64_t kMaxWidth = 1 << 20;
constexpr int64_t kMaxFfn = 1 << 24;
constexpr int64_t kMaxLayers = 4096;
constexpr int64_t kMaxHeads = 4096;
constexpr int64_t kMaxHeadDim = 4096;
constexpr int64_t kMaxContext = 1 << 30;
constexpr double kMaxTheta = 1e18;
constexpr double kMaxFactor = 1e6;
constexpr const char* kRopeFactorsTensor = "rope_freqs.weight";

// Names of one format for what both formats have.
struct Keys {
  const char* hidden_size;
  const char* layers;
  const char* heads;
  const char* kv_heads;
  const char* head_dim;
  const char* ffn_size;
  const char* context_length;
  const char* norm_eps;
};
constexpr Keys kGgufKeys = {
    "embedding_length",
    "block_count",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "feed_forward_length",
    "context_length",
    "attention.layer_norm_rms_epsilon"};
constexpr Keys kHubKeys = {
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "max_position_embeddings",
    "rms_norm_eps"};

void read_sizes(const Keys& keys, ConfigReader* reader, LlamaConfig* config) {
  config->hidden_size = reader->integer(keys.hidden_size, 1, kMaxWidth);
  config->layers = reader->integer(keys.layers, 1, kMaxLayers);
  config->heads = reader->integer(keys.heads, 1, kMaxHeads);
  config->kv_heads = reader->integer(keys.kv_heads, 1, kMaxHeads, config->heads);
  config->ffn_size = reader->integer(keys.ffn_size, 1, kMaxFfn);
  config->context_length = reader->integer(keys.context_length, 1, kMaxContext);
  config->norm_eps = reader->number(keys.norm_eps, 0, 1, 1e-6);
  if (config->heads % config->kv_heads != 0) {
    reader->fail(
        keys.kv_heads,
        concat("expected a divisor of ", config->heads, " heads, found ", config->kv_heads));
  }
  if (reader->has(keys.head_dim)) {
    config->head_dim = reader->integer(keys.head_dim, 1, kMaxHeadDim);
  } else if (config->hidden_size % config->heads != 0) {
    reader->fail(
        keys.head_dim,
        concat(
            "expected the key, since ",
            config->hidden_size,
            " values do not divide into ",
            config->heads,
            " heads; found no such key"));
  } else {
    config->head_dim = config->hidden_size / config->heads;
  }
}

void check_rope_dims(const char* key, ConfigReader* reader, const LlamaConfig& config) {
  const int64_t dims = config.rope.dims;
  if (dims % 2 != 0 || dims < 2 || dims > config.head_dim) {
    reader->fail(
        key,
        concat("expected an even number from 2 to head size ", config.head_dim, ", found ", dims));
  }
}

// ---- GGUF ----

void read_gguf_rope(const ModelSource& source, ConfigReader* reader, LlamaConfig* config) {
  RopeConfig& rope = config->rope;
  rope.pairs = RopePairs::kInterleaved;
  rope.theta = reader->number("rope.freq_base", 1, kMaxTheta, 10000.0);
  rope.dims = reader->integer("rope.dimension_count", 1, kMaxHeadDim, config->head_dim);
  check_rope_dims("rope.dimension_count", reader, *config);
  // Older files have only scale_linear.
  const char* factor_key =
      reader->has("rope.scaling.factor") ? "rope.scaling.factor" : "rope.scale_linear";
  const double factor = reader->number(factor_key, 0, kMaxFactor, 1.0);
  const std::string type =
      reader->text("rope.scaling.type", factor != 1.0 && factor != 0.0 ? "linear" : "none");
  if (type == "linear") {
    rope.scaling = RopeScaling::kLinear;
    rope.factor = factor > 0 ? factor : 1.0;
  } else if (type != "none") {
    reader->fail(
        "rope.scaling.type",
        "expected 'none' or 'linear', found " + quote(type),
        Code::kUnsupported);
  }
  if (source.tensors().find(kRopeFactorsTensor) != nullptr) {
    if (rope.scaling == RopeScaling::kLinear && rope.factor != 1.0) {
      reader->fail(
          factor_key,
          concat("expected no linear scaling beside ", quote(kRopeFactorsTensor), ", found both"),
          Code::kUnsupported);
    }
    rope.scaling = RopeScaling::kFactors;
  }
}

Result<LlamaConfig> read_gguf(const ModelSource& source) {
  LlamaConfig config;
  ConfigReader reader(*source.gguf(), "llama.");
  read_sizes(kGgufKeys, &reader, &config);
  // Files without the key have the vocabulary's size only in the embedding.
  const FileTensor* embedding = source.tensors().find("token_embd.weight");
  config.vocab_size = reader.integer(
      "vocab_size",
      1,
      kMaxVocab,
      embedding != nullptr ? std::optional(embedding->shape.front()) : std::nullopt);
  const int64_t value_length =
      reader.integer("attention.value_length", 1, kMaxHeadDim, config.head_dim);
  if (value_length != config.head_dim) {
    reader.fail(
        "attention.value_length",
        concat("expected the key length ", config.head_dim, ", found ", value_length));
  }
  config.sliding_window = reader.integer("attention.sliding_window", 0, kMaxContext, 0);
  if (reader.integer("expert_count", 0, kMaxLayers, 0) != 0) {
    reader.fail("expert_count", "expected no experts, found some", Code::kUnsupported);
  }
  read_gguf_rope(source, &reader, &config);
  PAVO_RETURN_IF_ERROR(reader.status());
  if (config.vocab_size > kMaxVocab) {  // the embedding's size is not checked by the reader
    return Status(Code::kInvalidFile, "gguf: tensor 'token_embd.weight': too many rows");
  }
  return config;
}

// ---- Hub ----

void read_hub_rope(const json& object, ConfigReader* model, LlamaConfig* config) {
  RopeConfig& rope = config->rope;
  rope.pairs = RopePairs::kHalves;
  // rope_parameters is the newer form and holds theta too; rope_scaling the older one.
  json none = json::object();
  const auto newer = object.find("rope_parameters");
  const auto older = object.find("rope_scaling");
  const bool has_newer = newer != object.end() && newer->is_object();
  const bool has_older = older != object.end() && older->is_object();
  const json& parameters = has_newer ? *newer : (has_older ? *older : none);
  ConfigReader reader(
      parameters, has_newer ? "config.json: rope_parameters" : "config.json: rope_scaling");
  const double theta = model->number("rope_theta", 1, kMaxTheta, 10000.0);
  rope.theta = reader.number("rope_theta", 1, kMaxTheta, theta);
  const double partial = reader.number(
      "partial_rotary_factor", 0, 1, model->number("partial_rotary_factor", 0, 1, 1.0));
  rope.dims = static_cast<int64_t>(static_cast<double>(config->head_dim) * partial);
  check_rope_dims("partial_rotary_factor", model, *config);

  const std::string type = reader.text("rope_type", reader.text("type", "default"));
  if (type == "linear") {
    rope.scaling = RopeScaling::kLinear;
    rope.factor = reader.number("factor", 1e-3, kMaxFactor);
  } else if (type == "llama3") {
    rope.scaling = RopeScaling::kFactors;
    rope.factor = reader.number("factor", 1, kMaxFactor);
    const double low = reader.number("low_freq_factor", 1e-3, kMaxFactor);
    const double high = reader.number("high_freq_factor", 1e-3, kMaxFactor);
    const auto original =
        reader.integer("original_max_position_embeddings", 1, kMaxContext, config->context_length);
    if (high <= low) {
      reader.fail(
          "high_freq_factor", concat("expected more than low_freq_factor ", low, ", found ", high));
    }
    if (reader.status().ok() && model->status().ok()) {
      rope.factors = llama3_rope_factors(
          rope.theta, rope.dims, rope.factor, low, high, static_cast<double>(original));
    }
  } else if (type != "default") {
    reader.fail(
        "rope_type",
        "expected 'default', 'linear' or 'llama3', found " + quote(type),
        Code::kUnsupported);
  }
  model->adopt(reader.status());
}

Result<LlamaConfig> read_hub(const ModelSource& source) {
  const json& object = *source.hub_config();
  const bool is_mistral = source.architecture() == "MistralForCausalLM";
  LlamaConfig config;
  ConfigReader reader(object, "config.json");
  read_sizes(kHubKeys, &reader, &config);
  config.vocab_size = reader.integer("vocab_size", 1, kMaxVocab);
  config.tie_embeddings = reader.flag("tie_word_embeddings", false);
  config.attention_bias = reader.flag("attention_bias", false);
  config.mlp_bias = reader.flag("mlp_bias", false);
  if (is_mistral && object.contains("sliding_window")) {
    config.sliding_window = reader.integer("sliding_window", 0, kMaxContext, 0);
  } else if (is_mistral) {
    config.sliding_window = 4096;  // what the absent key means there; null means none
  }
  const std::string activation = reader.text("hidden_act", "silu");
  if (activation != "silu") {
    reader.fail("hidden_act", "expected 'silu', found " + quote(activation), Code::kUnsupported);
  }
  if (reader.has("quantization_config") || reader.has("quantization")) {
    reader.fail(
        reader.has("quantization") ? "quantization" : "quantization_config",
        "expected unquantised weights (F32, F16, BF16), found a quantised checkpoint",
        Code::kUnsupported);
  }
  read_hub_rope(object, &reader, &config);
  PAVO_RETURN_IF_ERROR(reader.status());
  return config;
}

}  // namespace

std::vector<float> llama3_rope_factors(
    double theta,
    int64_t dims,
    double factor,
    double low_freq,
    double high_freq,
    double original_context) {
  std::vector<float> factors;
  for (int64_t i = 0; i < dims / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / static_cast<double>(dims);
    const double wavelength = 2.0 * std::numbers::pi * std::pow(theta, exponent);
    const double turns = original_context / wavelength;  // within the original context
    double divisor = 1.0;
    if (turns < low_freq) {
      divisor = factor;
    } else if (turns <= high_freq) {
      const double blend = (turns - low_freq) / (high_freq - low_freq);
      divisor = 1.0 / ((1.0 - blend) / factor + blend);
    }
    factors.push_back(static_cast<float>(divisor));
  }
  return factors;
}

Result<LlamaConfig> read_llama_config(const ModelSource& source) {
  const std::string& name = source.architecture();
  if (source.gguf() != nullptr && name == "llama") {
    return read_gguf(source);
  }
  if (source.hub_config() != nullptr &&
      (name == "LlamaForCausalLM" || name == "MistralForCausalLM")) {
    return read_hub(source);
  }
  return Status(
      Code::kUnsupported,
      concat(
          "architecture: expected 'llama' (GGUF), 'LlamaForCausalLM' or 'MistralForCausalLM' "
          "(config.json), found ",
          quote(name)));
}

}  // namespace pavo::llm
