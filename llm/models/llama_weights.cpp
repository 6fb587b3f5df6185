#include <string>
#include <unordered_set>

#include "llm/message.h"
#include "llm/models/llama_config.h"

namespace pavo::llm {
namespace {

// Tensor names of one format; those of a layer follow layer_prefix + number + '.'.
struct Names {
  const char* token_embd;
  const char* output_norm;
  const char* output;
  const char* layer_prefix;
  const char* attn_norm;
  const char* attn_q;
  const char* attn_k;
  const char* attn_v;
  const char* attn_output;
  const char* ffn_norm;
  const char* ffn_gate;
  const char* ffn_up;
  const char* ffn_down;
};
constexpr Names kGgufNames = {
    "token_embd",
    "output_norm",
    "output",
    "blk.",
    "attn_norm",
    "attn_q",
    "attn_k",
    "attn_v",
    "attn_output",
    "ffn_norm",
    "ffn_gate",
    "ffn_up",
    "ffn_down"};
constexpr Names kHubNames = {
    "model.embed_tokens",
    "model.norm",
    "lm_head",
    "model.layers.",
    "input_layernorm",
    "self_attn.q_proj",
    "self_attn.k_proj",
    "self_attn.v_proj",
    "self_attn.o_proj",
    "post_attention_layernorm",
    "mlp.gate_proj",
    "mlp.up_proj",
    "mlp.down_proj"};

// Frequencies that old Hub checkpoints store although they follow from the configuration.
constexpr std::string_view kDerivedSuffix = ".self_attn.rotary_emb.inv_freq";

bool is_plain_float(int32_t type) {
  return type == PAVO_TYPE_F32 || type == PAVO_TYPE_F16 || type == PAVO_TYPE_BF16;
}

// Looks tensors up, checks them, remembers which were used and keeps the first problem.
class Binder {
 public:
  Binder(const TensorTable& tensors) : tensors_(tensors) {}  // NOLINT(google-explicit-constructor)

  const FileTensor* required(const std::string& name, std::vector<int64_t> shape) {
    const FileTensor* tensor = optional(name, std::move(shape));
    if (tensor == nullptr) {
      fail(Code::kInvalidFile, name, "expected in the file, not found");
    }
    return tensor;
  }

  const FileTensor* optional(const std::string& name, std::vector<int64_t> shape) {
    const FileTensor* tensor = tensors_.find(name);
    if (tensor == nullptr) {
      return nullptr;
    }
    used_.insert(tensor);
    if (tensor->shape != shape) {
      fail(
          Code::kInvalidFile,
          name,
          concat("expected shape ", shape_text(shape), ", found ", shape_text(tensor->shape)));
    } else if (tensor->type == PAVO_TYPE_NONE || tensor->type == PAVO_TYPE_I32) {
      fail(
          Code::kUnsupported,
          name,
          "expected a weight type that Pavo can run, found " + quote(tensor->type_name));
    } else if (shape.size() == 1 && !is_plain_float(tensor->type)) {
      fail(
          Code::kUnsupported,
          name,
          "expected F32, F16 or BF16 for a vector, found " + quote(tensor->type_name));
    }
    return tensor;
  }

  // A weight with its bias, which must be there if `bias_required`.
  const FileTensor* weight(
      const std::string& name,
      int64_t rows,
      int64_t columns,
      bool bias_required,
      const FileTensor** bias) {
    *bias = bias_required ? required(name + ".bias", {rows}) : optional(name + ".bias", {rows});
    return required(name + ".weight", {rows, columns});
  }

  void ignore(const FileTensor* tensor) { used_.insert(tensor); }

  // Every tensor must have had a role.
  Status finish() {
    for (const FileTensor& tensor : tensors_.all()) {
      if (status_.ok() && used_.count(&tensor) == 0 && !tensor.name.ends_with(kDerivedSuffix)) {
        fail(
            Code::kInvalidFile,
            tensor.name,
            "expected no such tensor in the llama family; this may be another architecture, or "
            "the layer count is too small");
      }
    }
    return status_;
  }

 private:
  void fail(Code code, const std::string& name, const std::string& problem) {
    if (status_.ok()) {
      status_ = Status(code, concat("tensor ", quote(name), ": ", problem));
    }
  }

  const TensorTable& tensors_;
  std::unordered_set<const FileTensor*> used_;
  Status status_;
};

LlamaLayerWeights bind_layer(
    const Names& names, const LlamaConfig& config, int64_t layer, Binder* binder) {
  const std::string prefix = names.layer_prefix + std::to_string(layer) + ".";
  const int64_t hidden = config.hidden_size;
  const int64_t q_rows = config.heads * config.head_dim;
  const int64_t kv_rows = config.kv_heads * config.head_dim;
  const bool attn = config.attention_bias;
  const bool mlp = config.mlp_bias;
  LlamaLayerWeights out;
  const auto bind = [&](const char* name,
                        int64_t rows,
                        int64_t columns,
                        bool bias_required,
                        const FileTensor** bias) {
    return binder->weight(prefix + name, rows, columns, bias_required, bias);
  };
  out.attn_norm = binder->required(prefix + names.attn_norm + ".weight", {hidden});
  out.attn_q = bind(names.attn_q, q_rows, hidden, attn, &out.attn_q_bias);
  out.attn_k = bind(names.attn_k, kv_rows, hidden, attn, &out.attn_k_bias);
  out.attn_v = bind(names.attn_v, kv_rows, hidden, attn, &out.attn_v_bias);
  out.attn_output = bind(names.attn_output, hidden, q_rows, attn, &out.attn_output_bias);
  out.ffn_norm = binder->required(prefix + names.ffn_norm + ".weight", {hidden});
  out.ffn_gate = bind(names.ffn_gate, config.ffn_size, hidden, mlp, &out.ffn_gate_bias);
  out.ffn_up = bind(names.ffn_up, config.ffn_size, hidden, mlp, &out.ffn_up_bias);
  out.ffn_down = bind(names.ffn_down, hidden, config.ffn_size, mlp, &out.ffn_down_bias);
  return out;
}

}  // namespace

Result<LlamaWeights> bind_llama_weights(const ModelSource& source, const LlamaConfig& config) {
  const bool is_gguf = source.gguf() != nullptr;
  const Names& names = is_gguf ? kGgufNames : kHubNames;
  Binder binder(source.tensors());
  LlamaWeights out;
  const std::string output_name = std::string(names.output) + ".weight";
  const std::vector<int64_t> table_shape = {config.vocab_size, config.hidden_size};
  out.token_embd = binder.required(std::string(names.token_embd) + ".weight", table_shape);
  out.output_norm =
      binder.required(std::string(names.output_norm) + ".weight", {config.hidden_size});
  if (config.tie_embeddings) {
    binder.ignore(source.tensors().find(output_name));
  } else {
    out.output = binder.optional(output_name, table_shape);
  }
  if (out.output == nullptr) {
    out.output = out.token_embd;
  }
  if (is_gguf) {
    out.rope_factors = binder.optional("rope_freqs.weight", {config.rope.dims / 2});
  }
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    out.layers.push_back(bind_layer(names, config, layer, &binder));
  }
  PAVO_RETURN_IF_ERROR(binder.finish());
  return out;
}

}  // namespace pavo::llm
