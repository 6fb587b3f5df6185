// The Llama family (Llama, Mistral, SmolLM2, Falcon3): hyperparameters and weights, out of either
// file format. Everything is range- and shape-checked here, so that the graph builder and the
// engine can multiply sizes without fear.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"
#include "llm/model_file.h"

namespace pavo::llm {

// How rotary frequencies are stretched beyond the trained context.
enum class RopeScaling {
  kNone,
  kLinear,   // every frequency divided by `factor`
  kFactors,  // divided by its own number: a tensor of the file, or computed (llama3)
};

// Which two values of a head turn together.
enum class RopePairs {
  kInterleaved,  // (2i, 2i + 1): GGUF files of this family, whose q and k rows are permuted for it
  kHalves,       // (i, i + dims / 2): Hub checkpoints
};

struct RopeConfig {
  double theta = 0;
  int64_t dims = 0;  // rotated values of each head, even
  RopePairs pairs = RopePairs::kHalves;
  RopeScaling scaling = RopeScaling::kNone;
  double factor = 1;
  // kFactors, when the factors come from the configuration: dims / 2 of them. Empty when they are
  // the tensor LlamaWeights::rope_factors.
  std::vector<float> factors;
};

struct LlamaConfig {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t layers = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // divides heads
  int64_t head_dim = 0;
  int64_t ffn_size = 0;
  int64_t context_length = 0;  // as trained
  int64_t sliding_window = 0;  // tokens that attention sees; 0: all
  double norm_eps = 0;
  RopeConfig rope;
  bool tie_embeddings = false;  // Hub only: the head is the embedding, whatever else the file has
  bool attention_bias = false;  // Hub only: q, k, v and o must have biases
  bool mlp_bias = false;        // Hub only: gate, up and down must have biases
};

// kInvalidFile names the key; kUnsupported for what the family allows and Pavo does not (yet).
Result<LlamaConfig> read_llama_config(const ModelSource& source);

// Frequency divisors of the llama3 rule for dims / 2 pairs: 1 for wavelengths below
// original_context / high_freq, factor above original_context / low_freq, a blend between.
std::vector<float> llama3_rope_factors(
    double theta,
    int64_t dims,
    double factor,
    double low_freq,
    double high_freq,
    double original_context);

// Tensors of the source, by role; optional ones are nullptr. Shapes are [rows, columns] as for
// matmul: out[n] = sum_k w[n, k] * x[k].
struct LlamaLayerWeights {
  const FileTensor* attn_norm = nullptr;    // [hidden]
  const FileTensor* attn_q = nullptr;       // [heads * head_dim, hidden]
  const FileTensor* attn_k = nullptr;       // [kv_heads * head_dim, hidden]
  const FileTensor* attn_v = nullptr;       // [kv_heads * head_dim, hidden]
  const FileTensor* attn_output = nullptr;  // [hidden, heads * head_dim]
  const FileTensor* ffn_norm = nullptr;     // [hidden]
  const FileTensor* ffn_gate = nullptr;     // [ffn, hidden]
  const FileTensor* ffn_up = nullptr;       // [ffn, hidden]
  const FileTensor* ffn_down = nullptr;     // [hidden, ffn]
  // Optional, each [rows of its weight].
  const FileTensor* attn_q_bias = nullptr;
  const FileTensor* attn_k_bias = nullptr;
  const FileTensor* attn_v_bias = nullptr;
  const FileTensor* attn_output_bias = nullptr;
  const FileTensor* ffn_gate_bias = nullptr;
  const FileTensor* ffn_up_bias = nullptr;
  const FileTensor* ffn_down_bias = nullptr;
};

struct LlamaWeights {
  const FileTensor* token_embd = nullptr;    // [vocab, hidden]
  const FileTensor* output_norm = nullptr;   // [hidden]
  const FileTensor* output = nullptr;        // [vocab, hidden]; the same as token_embd if tied
  const FileTensor* rope_factors = nullptr;  // [rope.dims / 2] f32, optional
  std::vector<LlamaLayerWeights> layers;
};

// kInvalidFile for a missing tensor, a wrong shape or one that the family has no role for (so that
// a variant is never run without it in silence); kUnsupported for a type that Pavo cannot run. The
// pointers hold as long as `source`.
Result<LlamaWeights> bind_llama_weights(const ModelSource& source, const LlamaConfig& config);

}  // namespace pavo::llm
