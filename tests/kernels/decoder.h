// Nodes of Llama-like decoders, as graphs of the ABI: what the kernel tables are asked.
#pragma once

#include <cstdint>
#include <vector>

#include "pavo/plugin.h"

#include "tests/kernels/graph_builder.h"

namespace pavo::cuda {

// What a layer of a Llama-like decoder asks for, with T tokens.
struct Model {
  int64_t hidden, heads, kv_heads, head_dim, feed_forward, vocabulary;
  int32_t weight_type, kv_type;
};

inline void add_attention(GraphBuilder& b, const Model& m, int64_t tokens, uint32_t normed) {
  const uint32_t positions = b.step({tokens});
  for (const int64_t out : {m.heads * m.head_dim, m.kv_heads * m.head_dim}) {
    const uint32_t weight = b.weight(m.weight_type, {out, m.hidden});
    b.node(pavo_op_matmul, pavo_matmul_params{}, {normed, weight}, {b.activation({tokens, out})});
  }
  const uint32_t q = b.activation({tokens, m.heads, m.head_dim});  // views of the products
  const uint32_t k = b.activation({tokens, m.kv_heads, m.head_dim});
  pavo_rope_params rope = {};
  rope.mode = PAVO_ROPE_NEOX;
  rope.rotary_dims = static_cast<int32_t>(m.head_dim);
  rope.theta = 10000.0f;
  rope.freq_scale = rope.magnitude = 1.0f;
  const uint32_t turned = b.activation({tokens, m.heads, m.head_dim});
  b.node(pavo_op_rope, rope, {q, positions}, {turned});
  const uint32_t k_pool = b.kv_pool(m.kv_type, 16, m.kv_heads, m.head_dim);
  const uint32_t v_pool = b.kv_pool(m.kv_type, 16, m.kv_heads, m.head_dim);
  b.node(pavo_op_kv_store, pavo_kv_store_params{}, {k, k_pool, b.step({tokens})}, {k_pool});
  pavo_attention_params attention = {};
  attention.scale = 0.125f;
  attention.causal = 1;
  attention.value_dim = static_cast<int32_t>(m.head_dim);
  const uint32_t mixed = b.activation({tokens, m.heads, m.head_dim});
  b.node(
      pavo_op_attention,
      attention,
      {turned,
       k_pool,
       v_pool,
       b.step({tokens}),
       b.step({tokens}),
       b.step({2}),
       b.step({1}),
       b.step({1, 16})},
      {mixed});
}

inline void add_layer(GraphBuilder& b, const Model& m, int64_t tokens) {
  b.bucket() = {sizeof(pavo_bucket), static_cast<int32_t>(tokens), 1, 0, 1024};
  const uint32_t table =
      b.weight(m.weight_type, {m.vocabulary, m.hidden}, PAVO_USE_GATHER | PAVO_USE_MATMUL);
  const uint32_t x = b.activation({tokens, m.hidden});
  b.node(pavo_op_embed, pavo_embed_params{}, {table, b.step({tokens})}, {x});
  pavo_norm_params norm = {};
  norm.eps = 1e-5f;
  const uint32_t normed = b.activation({tokens, m.hidden});
  b.node(pavo_op_norm, norm, {x, b.dense({m.hidden})}, {normed});
  add_attention(b, m, tokens, normed);
  const uint32_t gate = b.activation({tokens, m.feed_forward});
  const uint32_t up = b.activation({tokens, m.feed_forward});
  const uint32_t gated = b.activation({tokens, m.feed_forward});
  b.node(pavo_op_glu, pavo_glu_params{}, {gate, up}, {gated});
  const uint32_t sum = b.activation({tokens, m.hidden});
  b.node(pavo_op_binary, pavo_binary_params{}, {x, normed}, {sum});
  const uint32_t logits = b.activation({tokens, m.vocabulary});
  b.node(pavo_op_matmul, pavo_matmul_params{}, {sum, table}, {logits});
}

// What no layer asks, but some kernel is made for.
inline void add_others(GraphBuilder& b, const Model& m, int64_t tokens) {
  const uint32_t rows = b.activation({tokens + 3, m.hidden});
  const uint32_t picked = b.activation({tokens, m.hidden});
  b.node(pavo_op_embed, pavo_embed_params{}, {rows, b.step({tokens})}, {picked});
}

inline std::vector<Model> models() {
  std::vector<Model> all;
  for (const int32_t type :
       {PAVO_TYPE_F32,
        PAVO_TYPE_F16,
        PAVO_TYPE_BF16,
        PAVO_TYPE_Q4_0,
        PAVO_TYPE_Q4_1,
        PAVO_TYPE_Q8_0}) {
    all.push_back({576, 9, 3, 64, 1536, 49152, type, PAVO_TYPE_F16});  // SmolLM2-135M
  }
  for (const int32_t type : {PAVO_TYPE_Q4_K, PAVO_TYPE_Q6_K}) {
    all.push_back({4096, 32, 8, 128, 14336, 128256, type, PAVO_TYPE_Q8_0});  // Llama 3 8B
  }
  return all;
}

}  // namespace pavo::cuda
