#include "llm/models/llama.h"

#include <cmath>

namespace pavo::llm {
namespace {

constexpr const char* kRopeFactorsName = "rope_factors";

HostTensor to_host_tensor(const FileTensor& tensor) {
  return {
      tensor.name,
      tensor.type,
      Shape::from(tensor.shape),
      tensor.data,
      static_cast<int64_t>(tensor.size_bytes)};
}

std::string block_name(int64_t index, const char* part) {
  return "blk." + std::to_string(index) + "." + part;
}

StepTensors add_steps(GraphBuilder& builder, const Bucket& bucket, int64_t pages_per_sequence) {
  const int64_t tokens = bucket.tokens;
  const int64_t sequences = bucket.sequences;
  StepTensors steps;
  steps.ids = builder.step("ids", {tokens});
  steps.positions = builder.step("positions", {tokens});
  steps.row_seq = builder.step("row_seq", {tokens});
  steps.seq_rows = builder.step("seq_rows", {sequences + 1});
  steps.lengths = builder.step("lengths", {sequences});
  steps.page_table = builder.step("page_table", {sequences, pages_per_sequence});
  steps.slots = builder.step("slots", {tokens});
  if (bucket.outputs != bucket.tokens) {
    steps.output_rows = builder.step("output_rows", {bucket.outputs});
  }
  return steps;
}

}  // namespace

struct LlamaModel::Build {
  GraphBuilder builder;
  StepTensors steps;
  const GraphOptions& options;
  std::map<std::string, TensorId> weights;  // each is one tensor of the graph, however often used
  TensorId residual = kNoTensor;            // the residual stream [T, hidden]
  TensorId rope_factors = kNoTensor;

  TensorId weight(const FileTensor* tensor) {
    if (tensor == nullptr) {
      return kNoTensor;
    }
    const auto found = weights.find(tensor->name);
    if (found != weights.end()) {
      return found->second;
    }
    const TensorId id = builder.weight(tensor->name, tensor->type, Shape::from(tensor->shape));
    weights.emplace(tensor->name, id);
    return id;
  }
  TensorId linear(
      const std::string& name, TensorId x, const FileTensor* w, const FileTensor* bias) {
    return builder.matmul(name, x, weight(w), weight(bias), options.exact);
  }
};

LlamaModel::LlamaModel(LlamaConfig config, LlamaWeights weights)
    : config_(std::move(config)), weights_(std::move(weights)) {
  info_.vocab_size = config_.vocab_size;
  info_.context_length = config_.context_length;
  info_.layers = config_.layers;
}

Result<std::unique_ptr<Model>> LlamaModel::create(const ModelSource& source) {
  PAVO_ASSIGN_OR_RETURN(LlamaConfig config, read_llama_config(source));
  PAVO_ASSIGN_OR_RETURN(LlamaWeights weights, bind_llama_weights(source, config));
  std::unique_ptr<LlamaModel> model(new LlamaModel(std::move(config), std::move(weights)));
  model->info_.architecture = source.architecture();
  for (const auto& [name, tensor] : model->weights()) {
    model->info_.parameters += tensor.shape.elements();
    model->info_.weight_bytes += tensor.size_bytes;
  }
  return std::unique_ptr<Model>(std::move(model));
}

std::vector<const FileTensor*> LlamaModel::all_weights() const {
  std::vector<const FileTensor*> all = {
      weights_.token_embd, weights_.output_norm, weights_.output, weights_.rope_factors};
  for (const LlamaLayerWeights& layer : weights_.layers) {
    for (const FileTensor* tensor :
         {layer.attn_norm,
          layer.attn_q,
          layer.attn_k,
          layer.attn_v,
          layer.attn_output,
          layer.ffn_norm,
          layer.ffn_gate,
          layer.ffn_up,
          layer.ffn_down,
          layer.attn_q_bias,
          layer.attn_k_bias,
          layer.attn_v_bias,
          layer.attn_output_bias,
          layer.ffn_gate_bias,
          layer.ffn_up_bias,
          layer.ffn_down_bias}) {
      all.push_back(tensor);
    }
  }
  std::erase(all, nullptr);
  return all;
}

std::map<std::string, HostTensor> LlamaModel::weights() const {
  std::map<std::string, HostTensor> out;
  for (const FileTensor* tensor : all_weights()) {
    out.emplace(tensor->name, to_host_tensor(*tensor));
  }
  if (!config_.rope.factors.empty()) {
    const std::vector<float>& factors = config_.rope.factors;
    out.emplace(
        kRopeFactorsName,
        HostTensor{
            kRopeFactorsName,
            PAVO_TYPE_F32,
            Shape{static_cast<int64_t>(factors.size())},
            reinterpret_cast<const std::byte*>(factors.data()),
            static_cast<int64_t>(factors.size() * sizeof(float))});
  }
  return out;
}

std::vector<KvPoolSpec> LlamaModel::kv_pools(const GraphOptions& options) const {
  const Shape shape = {options.pages, config_.kv_heads, PAVO_KV_PAGE_ROWS, config_.head_dim};
  std::vector<KvPoolSpec> pools;
  for (int64_t i = 0; i < config_.layers; ++i) {
    pools.push_back({block_name(i, "k_pool"), options.k_type, shape});
    pools.push_back({block_name(i, "v_pool"), options.v_type, shape});
  }
  return pools;
}

// softmax(rope(x Wq) rope(x Wk)^T / sqrt(D)) (x Wv) Wo
TensorId LlamaModel::attention(Build& build, int64_t index, TensorId normed) const {
  GraphBuilder& b = build.builder;
  const LlamaLayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  const auto name = [index](const char* part) { return block_name(index, part); };
  const int64_t tokens = b.shape(normed).rank() == 0 ? 0 : b.shape(normed)[0];
  const Shape query_shape = {tokens, config_.heads, config_.head_dim};
  const Shape kv_shape = {tokens, config_.kv_heads, config_.head_dim};
  const Shape pool_shape = {
      build.options.pages, config_.kv_heads, PAVO_KV_PAGE_ROWS, config_.head_dim};

  TensorId q =
      b.reshape(build.linear(name("attn_q"), normed, w.attn_q, w.attn_q_bias), query_shape);
  TensorId k = b.reshape(build.linear(name("attn_k"), normed, w.attn_k, w.attn_k_bias), kv_shape);
  const TensorId v =
      b.reshape(build.linear(name("attn_v"), normed, w.attn_v, w.attn_v_bias), kv_shape);

  pavo_rope_params rope = {};
  rope.mode = config_.rope.pairs == RopePairs::kHalves ? PAVO_ROPE_NEOX : PAVO_ROPE_NORMAL;
  rope.rotary_dims = static_cast<int32_t>(config_.rope.dims);
  rope.theta = static_cast<float>(config_.rope.theta);
  rope.freq_scale = static_cast<float>(1.0 / config_.rope.factor);
  rope.magnitude = 1;
  if (config_.rope.scaling == RopeScaling::kFactors) {
    rope.freq_scale = 1;
  }
  q = b.rope(name("rope_q"), q, build.steps.positions, build.rope_factors, rope);
  k = b.rope(name("rope_k"), k, build.steps.positions, build.rope_factors, rope);

  const TensorId k_pool = b.kv_pool(name("k_pool"), build.options.k_type, pool_shape);
  const TensorId v_pool = b.kv_pool(name("v_pool"), build.options.v_type, pool_shape);
  b.kv_store(name("k_store"), k, k_pool, build.steps.slots);
  b.kv_store(name("v_store"), v, v_pool, build.steps.slots);

  pavo_attention_params params = {};
  params.scale = 1.0f / std::sqrt(static_cast<float>(config_.head_dim));
  params.causal = 1;
  params.window = static_cast<int32_t>(config_.sliding_window);
  const TensorId attended = b.attention(
      name("attention"),
      {q,
       k_pool,
       v_pool,
       build.steps.positions,
       build.steps.row_seq,
       build.steps.seq_rows,
       build.steps.lengths,
       build.steps.page_table},
      params);
  const TensorId flat = b.reshape(attended, {tokens, config_.heads * config_.head_dim});
  return build.linear(name("attn_output"), flat, w.attn_output, w.attn_output_bias);
}

// x += attention(norm(x)); x += down(silu(gate) * up)(norm(x)). Takes norm(x), returns what is
// still to be added to the residual stream, so that the addition fuses with the next norm.
TensorId LlamaModel::layer(Build& build, int64_t index, TensorId normed) const {
  GraphBuilder& b = build.builder;
  const LlamaLayerWeights& w = weights_.layers[static_cast<size_t>(index)];
  const auto name = [index](const char* part) { return block_name(index, part); };
  const auto eps = static_cast<float>(config_.norm_eps);

  const TensorId attended = attention(build, index, normed);
  const auto [ffn_in, sum] =
      b.add_rms_norm(name("ffn_norm"), attended, build.residual, build.weight(w.ffn_norm), eps);
  build.residual = sum;
  const TensorId gate = build.linear(name("ffn_gate"), ffn_in, w.ffn_gate, w.ffn_gate_bias);
  const TensorId up = build.linear(name("ffn_up"), ffn_in, w.ffn_up, w.ffn_up_bias);
  const TensorId mixed = b.glu(name("ffn_glu"), gate, up, PAVO_GLU_SILU);
  return build.linear(name("ffn_down"), mixed, w.ffn_down, w.ffn_down_bias);
}

Result<ModelGraph> LlamaModel::build(const Bucket& bucket, const GraphOptions& options) const {
  Build build{GraphBuilder(bucket), {}, options, {}, kNoTensor, kNoTensor};
  GraphBuilder& b = build.builder;
  build.steps = add_steps(b, bucket, options.pages_per_sequence);
  const auto eps = static_cast<float>(config_.norm_eps);
  if (!config_.rope.factors.empty()) {
    build.rope_factors = b.weight(
        kRopeFactorsName, PAVO_TYPE_F32, {static_cast<int64_t>(config_.rope.factors.size())});
  } else {
    build.rope_factors = build.weight(weights_.rope_factors);
  }

  build.residual = b.embed("token_embd", build.weight(weights_.token_embd), build.steps.ids);
  TensorId pending = kNoTensor;  // what the last layer still has to add to the residual stream
  for (int64_t i = 0; i < config_.layers; ++i) {
    const TensorId norm = build.weight(weights_.layers[static_cast<size_t>(i)].attn_norm);
    TensorId normed = kNoTensor;
    if (i == 0) {
      normed = b.rms_norm(block_name(i, "attn_norm"), build.residual, norm, eps);
    } else {
      std::tie(normed, build.residual) =
          b.add_rms_norm(block_name(i, "attn_norm"), pending, build.residual, norm, eps);
    }
    pending = layer(build, i, normed);
  }

  TensorId last = b.add("last_add", pending, build.residual);
  if (build.steps.output_rows != kNoTensor) {
    last = b.embed("output_rows", last, build.steps.output_rows);
  }
  last = b.rms_norm("output_norm", last, build.weight(weights_.output_norm), eps);
  ModelGraph out;
  out.logits = build.linear("output", last, weights_.output, nullptr);
  out.steps = build.steps;
  PAVO_ASSIGN_OR_RETURN(out.graph, std::move(b).finish());
  return out;
}

}  // namespace pavo::llm
