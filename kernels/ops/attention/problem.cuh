// What every attention kernel works on: the operands, who sees which rows, how a score is finished,
// and the online softmax. Host and device, so that tests run it on the CPU.
//
// Letters as in ops.inc. R = H / G: query heads of one K/V head. A *query vector* is one head of
// one token; the n tokens of a sequence have n * R of them for each K/V head, tokens outermost.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/kv_page.cuh"
#include "kernels/common/rows.h"

namespace pavo::cuda {

struct AttentionProblem {
  const float* q;
  float* out;
  KvPool k, v;                // v may lie in k's pool: the first value_dims of its rows
  RowMap q_rows, out_rows;    // rows of [T*H, D] and [T*H, Dv]
  const int32_t* rows;        // [T]
  const int32_t* row_seq;     // [T]
  const int32_t* seq_rows;    // [S+1]
  const int32_t* lengths;     // [S]
  const int32_t* page_table;  // [S,P]
  const float* sinks;         // [H] or NULL
  const float* slopes;        // [H] or NULL
  const float* mask;          // [T,mask_columns] or NULL
  const int32_t* row_list;    // [T,list_columns] or NULL
  int64_t page_table_stride, mask_stride, list_stride;  // elements from row to row
  int32_t tokens, heads, group, sequences, pages, mask_columns, list_columns;
  int32_t key_dims, value_dims;
  int32_t causal, window;
  float scale, softcap;
  // Partial results where K/V is split over blocks: sums [splits][T*H][Dv], states [splits][T*H].
  int32_t splits;
  float* partial_sums;
  float2* partial_states;  // largest score, sum of weights

  // Sequence of a token; -1: padding.
  PAVO_HOST_DEVICE int32_t sequence_of(int64_t token) const {
    const int32_t sequence = row_seq[token];
    return sequence >= 0 && sequence < sequences ? sequence : -1;
  }
  // K/V rows of a sequence, never more than its pages hold.
  PAVO_HOST_DEVICE int32_t length_of(int32_t sequence) const {
    const int32_t most = pages * PAVO_KV_PAGE_ROWS;
    const int32_t length = lengths[sequence];
    return length < 0 ? 0 : length < most ? length : most;
  }
  // Number in the pools of page p of a sequence; the pools check it.
  PAVO_HOST_DEVICE int32_t page_of(int32_t sequence, int32_t p) const {
    return page_table[sequence * page_table_stride + p];
  }
};

// The K/V rows that a token sees: first..last-1.
struct VisibleRows {
  int32_t own;  // the token's row
  int32_t first, last;
};

PAVO_HOST_DEVICE inline VisibleRows visible_rows(
    const AttentionProblem& problem, int64_t token, int32_t length) {
  const int32_t own = problem.rows[token];
  const int64_t first = problem.window > 0 ? int64_t{own} - problem.window + 1 : 0;
  const int64_t last = problem.causal != 0 ? int64_t{own} + 1 : length;
  const int32_t end = last < length ? static_cast<int32_t>(last) : length;
  const int32_t begin = first > 0 ? static_cast<int32_t>(first < length ? first : length) : 0;
  return begin < end ? VisibleRows{own, begin, end} : VisibleRows{own, 0, 0};
}

// From scale * q.k to the score without mask. slope 0: no ALiBi.
PAVO_HOST_DEVICE inline float finish_score(
    const AttentionProblem& problem, float dot, float slope, int32_t row, int32_t own) {
  float score = dot;
  if (problem.softcap > 0.0f) {
    score = problem.softcap * tanhf(score / problem.softcap);
  }
  if (slope != 0.0f) {
    score += slope * static_cast<float>(int64_t{row} - own);
  }
  return score;
}

// Largest score so far, and the sum of exp(score - largest). A score of -INFINITY has no weight.
struct SoftmaxState {
  float largest = -INFINITY;
  float sum = 0.0f;
};

PAVO_HOST_DEVICE inline float softmax_weight(float score, float largest) {
  return score == -INFINITY ? 0.0f : expf(score - largest);
}

// Raises `largest` to cover new scores; what was summed before is to be multiplied with the result.
PAVO_HOST_DEVICE inline float softmax_raise(SoftmaxState& state, float new_scores) {
  const float largest = fmaxf(state.largest, new_scores);
  const float correction = state.largest == largest ? 1.0f : softmax_weight(state.largest, largest);
  state.largest = largest;
  state.sum *= correction;
  return correction;
}

// What a sum of weighted values relative to `largest` is multiplied with in the end; 0 if there is
// no weight. `sink`: one more score without a value, NULL for none.
PAVO_HOST_DEVICE inline float softmax_factor(const SoftmaxState& state, const float* sink) {
  const float extra = sink == nullptr ? -INFINITY : *sink;
  const float largest = fmaxf(state.largest, extra);
  const float own = softmax_weight(state.largest, largest);
  const float total = state.sum * own + softmax_weight(extra, largest);
  return total == 0.0f ? 0.0f : own / total;
}

// Up to `size` query vectors of one sequence and K/V head, which one block works on.
struct QueryTile {
  int32_t sequence;
  int32_t first_token;  // of the sequence
  int64_t first;        // vector of the sequence
  int32_t count;
};

// Tokens begin..end-1 of a sequence.
struct TokenRange {
  int32_t begin, end;
};

PAVO_HOST_DEVICE inline TokenRange tokens_of(const AttentionProblem& problem, int32_t sequence) {
  const int32_t begin = problem.seq_rows[sequence], end = problem.seq_rows[sequence + 1];
  TokenRange range{begin > 0 ? begin : 0, end < problem.tokens ? end : problem.tokens};
  if (range.end < range.begin) {
    range.end = range.begin;
  }
  return range;
}

// Tiles do not cross sequences; sequences come in order. False beyond the last tile.
PAVO_HOST_DEVICE inline bool find_query_tile(
    const AttentionProblem& problem, int64_t index, int32_t size, QueryTile* tile) {
  for (int32_t s = 0; s < problem.sequences; ++s) {
    const TokenRange range = tokens_of(problem, s);
    const int64_t vectors = int64_t{range.end - range.begin} * problem.group;
    const int64_t tiles = (vectors + size - 1) / size;
    if (index < tiles) {
      const int64_t left = vectors - index * size;
      *tile = {s, range.begin, index * size, static_cast<int32_t>(left < size ? left : size)};
      return true;
    }
    index -= tiles;
  }
  return false;
}

// Bound of the number of tiles, whatever the sequences' shares of the tokens.
inline int64_t query_tiles(int64_t tokens, int64_t sequences, int64_t group, int64_t size) {
  int64_t common = size;  // greatest common divisor: vectors come in multiples of `group`
  for (int64_t rest = group; rest != 0;) {
    const int64_t next = common % rest;
    common = rest;
    rest = next;
  }
  const int64_t used = sequences < tokens ? sequences : tokens;
  return (tokens * group + used * (size - common)) / size;
}

// Pages begin..end-1 of a sequence.
struct PageRange {
  int32_t begin, end;
};

// The share of a split in the pages that hold rows first..last-1.
PAVO_HOST_DEVICE inline PageRange pages_of_split(
    int32_t first, int32_t last, int32_t split, int32_t splits) {
  if (first >= last) {
    return {0, 0};
  }
  const int32_t begin = first / PAVO_KV_PAGE_ROWS;
  const int32_t end = (last - 1) / PAVO_KV_PAGE_ROWS + 1;
  const int32_t share = (end - begin + splits - 1) / splits;
  const int32_t from = begin + split * share;
  const int32_t to = from + share;
  return {from < end ? from : end, to < end ? to : end};
}

}  // namespace pavo::cuda
