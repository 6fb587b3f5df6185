// One attention over K/V pages, cut into items that threads compute one by one.
//
// An item is a block of tokens of one sequence, one K/V head with all query heads that share it,
// and a chunk of K/V rows. Where a block has several chunks (long contexts with few tokens), each
// leaves a partial result per token and head, and combine_partials adds them up.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pavo/quant.h"

namespace pavo::cpu {

// K or V of one layer.
struct KvPool {
  int32_t type;           // f32, f16, bf16 or q8_0
  const std::byte* data;  // [pages][heads][layout.head_bytes]
  int64_t pages;
  int64_t heads;
  int64_t dim;  // leading values of a row that are used
  pavo_kv_layout layout;

  const std::byte* head(int64_t page, int64_t g) const {
    return data + (page * heads + g) * layout.head_bytes;
  }
};

// Strides are in elements.
struct AttentionProblem {
  int64_t heads;     // H
  int64_t kv_heads;  // G
  const float* q;    // [T,H,D]
  int64_t q_token, q_head;
  float* out;  // [T,H,Dv]
  int64_t out_token, out_head;
  KvPool k, v;
  const int32_t* rows;        // [T]
  const int32_t* page_table;  // [S,P]
  int64_t page_table_pitch;
  const int32_t* lengths;  // [S]
  const float* sinks;      // [H] or NULL
  const float* slopes;     // [H] or NULL
  const float* mask;       // [T,mask_columns] or NULL
  int64_t mask_pitch, mask_columns;
  float scale, softcap;
  bool causal;
  int64_t window;

  int64_t group() const { return heads / kv_heads; }
  // Rows that the token at row `own` of a sequence of `length` rows sees: begin .. end - 1.
  int64_t rows_begin(int64_t own) const {
    return window > 0 && own >= window ? own - window + 1 : 0;
  }
  int64_t rows_end(int64_t own, int64_t length) const {
    return causal && own + 1 < length ? own + 1 : length;
  }
};

struct AttentionItem {
  int64_t first_token;
  int64_t tokens;
  int64_t sequence;
  int64_t row_begin, row_end;  // of the chunk, cut to what the block's tokens see
  float* partials;             // of the block's tokens, [tokens][H][partial_floats]; NULL: the item
                               // is all of its block and writes the outputs
};

// A partial result: values not yet divided by their weight.
struct PartialLayout {
  static constexpr int64_t kLargest = 0;  // largest score; -inf: no row was seen
  static constexpr int64_t kWeight = 1;   // sum of exp(score - largest)
  static constexpr int64_t kValues = 2;   // [Dv]
  static constexpr int64_t floats(int64_t value_dim) { return kValues + value_dim; }
};

// The inner kernel of one instruction set; {} where there is none for this machine.
struct AttentionFunctions {
  // Floats of scratch that attend needs.
  int64_t (*scratch_floats)(int64_t head_dim, int64_t value_dim, int64_t block_rows) = nullptr;
  // Computes one item for K/V head g. `scratch` is 64-byte aligned. False if a page of the table is
  // not in a pool.
  bool (*attend)(
      const AttentionProblem& problem,
      const AttentionItem& item,
      int64_t g,
      float* scratch) = nullptr;

  explicit operator bool() const { return attend != nullptr; }
};

AttentionFunctions attention_pages_functions();

}  // namespace pavo::cpu
