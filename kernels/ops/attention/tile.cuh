// What the tiled attention kernels share: the query vectors of a block, staging parts of K/V pages
// in shared memory as f32, and writing results, whole or partial.
#pragma once

#include "kernels/common/entry.h"
#include "kernels/common/reduce.cuh"
#include "kernels/common/vec.cuh"
#include "kernels/ops/attention/node.h"

namespace pavo::cuda {

// Floats behind each row in shared memory: rows of a multiple of 32 floats then begin in different
// banks, and stay 16-byte aligned.
constexpr int kRowPadding = 4;

// Per query vector of a tile; in shared memory.
template <int kSize>
struct TileVectors {
  int32_t token[kSize];   // -1: none, or padding that lies among the sequence's tokens
  int32_t output[kSize];  // token of the output row, also of padding; -1: none
  int32_t head[kSize];
  VisibleRows visible[kSize];
  float slope[kSize];
  // The softmax so far. In shared memory, since registers are what the kernels lack.
  float largest[kSize];
  float sum[kSize];
  int32_t first, last;  // rows that any vector sees

  // All threads of a block of at least kSize threads must take part; ends with a barrier.
  __device__ __forceinline__ void fill(
      const AttentionProblem& problem, const QueryTile& tile, int32_t kv_head) {
    const auto i = static_cast<int32_t>(threadIdx.x);
    if (i == 0) {
      first = INT32_MAX;
      last = 0;
    }
    __syncthreads();
    if (i < kSize) {
      const int64_t vector = tile.first + i;
      const bool used = i < tile.count;
      const auto t = used ? tile.first_token + static_cast<int32_t>(vector / problem.group) : 0;
      const auto h =
          used ? kv_head * problem.group + static_cast<int32_t>(vector % problem.group) : 0;
      const bool valid = used && problem.sequence_of(t) == tile.sequence;
      VisibleRows rows{0, 0, 0};
      if (valid) {
        rows = visible_rows(problem, t, problem.length_of(tile.sequence));
      }
      largest[i] = -INFINITY;
      sum[i] = 0.0f;
      token[i] = valid ? t : -1;
      output[i] = used ? t : -1;
      head[i] = h;
      visible[i] = rows;
      slope[i] = valid && problem.slopes != nullptr ? problem.slopes[h] : 0.0f;
      if (rows.first < rows.last) {
        atomicMin(&first, rows.first);
        atomicMax(&last, rows.last);
      }
    }
    __syncthreads();
  }

  __device__ __forceinline__ SoftmaxState state(int i) const { return {largest[i], sum[i]}; }
  __device__ __forceinline__ void set_state(int i, SoftmaxState state) {
    largest[i] = state.largest;
    sum[i] = state.sum;
  }

  // Score of vector i with a row, from scale * q.k.
  __device__ __forceinline__ float score(
      const AttentionProblem& problem, int i, int32_t row, float dot) const {
    const VisibleRows rows = visible[i];
    return row >= rows.first && row < rows.last
               ? finish_score(problem, dot, slope[i], row, rows.own)
               : -INFINITY;
  }
};

// The part of one page that a block may read: NULL, or rows first..last-1.
struct PageRows {
  const std::byte* head;
  int32_t first, last;
};

__device__ __forceinline__ PageRows page_rows(
    const AttentionProblem& problem,
    const KvPool& pool,
    int32_t sequence,
    int32_t kv_head,
    int32_t page,
    int32_t first,
    int32_t last) {
  const int32_t begin = page * PAVO_KV_PAGE_ROWS;
  return {
      pool.head(problem.page_of(sequence, page), kv_head),
      max(first - begin, 0),
      min(last - begin, PAVO_KV_PAGE_ROWS)};
}

// Brings kRows rows of kDims values to shared memory as f32, `stride` floats from row to row, by
// all kThreads threads. Rows that may not be read and columns beyond the pool's become zeros: a
// weight of 0 does not clear NaN. All loads of a thread are on their way before the first is
// decoded.
template <typename Load, int kThreads, int kRows, int kDims>
__device__ __forceinline__ void stage_rows(
    const KvPool& pool,
    const PageRows& rows,
    int32_t first_row,
    int32_t first_dim,
    float* shared,
    int stride) {
  constexpr int kRowUnits = kDims / 8;
  constexpr int kUnits = kRows * kRowUnits / kThreads;
  static_assert(kUnits >= 1 && kUnits * kThreads == kRows * kRowUnits);
  // Units of a thread have the same columns, kStep rows apart.
  constexpr int kStep = kThreads / kRowUnits;
  static_assert(kStep * kRowUnits == kThreads);
  const int unit_row = static_cast<int>(threadIdx.x) / kRowUnits;
  const int unit_dim = static_cast<int>(threadIdx.x) % kRowUnits * 8;
  const int32_t k = first_dim + unit_dim;
  const bool in_columns = rows.head != nullptr && k < pool.dims;
  const std::byte* head = rows.head != nullptr ? rows.head : pool.data;
  const KvUnit unit = kv_unit(pool, head, first_row + unit_row, k);
  float* target = shared + unit_row * stride + unit_dim;
  with_kv_type(pool.type, [&](auto codec) {
    KvRaw8 raw[kUnits];
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      const int32_t row = first_row + unit_row + i * kStep;
      raw[i] = KvRaw8{};
      if (in_columns && row >= rows.first && row < rows.last) {
        raw[i] = codec.template fetch8<Load>(
            {unit.low + i * kStep * pool.low_row_bytes,
             unit.scale + i * kStep * pool.scale_row_bytes});
      }
    }
#pragma unroll
    for (int i = 0; i < kUnits; ++i) {
      float values[8];
      codec.decode8(raw[i], values);
      store4(target + i * kStep * stride, make_float4(values[0], values[1], values[2], values[3]));
      store4(
          target + i * kStep * stride + 4, make_float4(values[4], values[5], values[6], values[7]));
    }
  });
}

__device__ __forceinline__ float dot4(float4 a, float4 b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// Where the sums of one query vector go, and what they are multiplied with: the output, or the
// split's partial sums.
struct ResultRow {
  float* sums;
  float factor;
};

__device__ __forceinline__ ResultRow result_row(
    const AttentionProblem& problem,
    int32_t token,
    int32_t head,
    int32_t split,
    SoftmaxState state) {
  const int64_t row = int64_t{token} * problem.heads + head;
  if (problem.splits == 1) {
    const float* sink = problem.sinks == nullptr ? nullptr : problem.sinks + head;
    return {problem.out + problem.out_rows.offset(row), softmax_factor(state, sink)};
  }
  const int64_t partial = split * (int64_t{problem.tokens} * problem.heads) + row;
  return {problem.partial_sums + partial * problem.value_dims, 1.0f};
}

// By one thread of a query vector; nothing if results are whole.
__device__ __forceinline__ void write_state(
    const AttentionProblem& problem,
    int32_t token,
    int32_t head,
    int32_t split,
    SoftmaxState state) {
  if (problem.splits > 1) {
    const int64_t rows = int64_t{problem.tokens} * problem.heads;
    problem.partial_states[split * rows + int64_t{token} * problem.heads + head] =
        make_float2(state.largest, state.sum);
  }
}

// Zeros for the tokens of no sequence, shared out among the blocks of one K/V head and split; for
// kernels that write whole results.
template <int kThreads>
__device__ __forceinline__ void clear_padding(const AttentionProblem& problem, int32_t kv_head) {
  const int32_t begin = problem.sequences == 0 ? problem.tokens : tokens_of(problem, 0).begin;
  const int32_t end =
      problem.sequences == 0 ? problem.tokens : tokens_of(problem, problem.sequences - 1).end;
  for (int64_t t = blockIdx.x; t < problem.tokens; t += gridDim.x) {
    if (t >= begin && t < end) {
      continue;
    }
    for (int32_t h = kv_head * problem.group; h < (kv_head + 1) * problem.group; ++h) {
      float* out = problem.out + problem.out_rows.offset(t * problem.heads + h);
      for (auto d = static_cast<int32_t>(threadIdx.x); d < problem.value_dims; d += kThreads) {
        out[d] = 0.0f;
      }
    }
  }
}

// What both tiled kernels ask beyond attention_fits: no mask or row list, head sizes in units of 8.
inline bool attention_tiles_fit(
    const NodeQuery& query, pavo_verdict* verdict, int64_t max_value_dims) {
  using namespace attention_input;
  Checker check(query, verdict);
  if (!attention_fits(query, verdict)) {
    return false;
  }
  for (const uint32_t operand : {kMask, kRowList}) {
    if (query.input(operand) != nullptr) {
      return sdk::refuse(
          verdict,
          PAVO_REASON_OPERAND,
          static_cast<int32_t>(operand),
          -1,
          0,
          1,
          "only the generic kernel takes a mask or a row list");
    }
  }
  const uint32_t out = check.output(0);
  return check.dim_multiple(kQ, 2, 8) && check.dim_multiple(out, 2, 8) &&
         check.dim_range(out, 2, 8, max_value_dims);
}

// Whether this run's addresses allow vectors; otherwise the generic kernel runs.
inline bool attention_aligned(const AttentionProblem& problem) {
  return aligned16(problem.q, problem.out, problem.k.data, problem.v.data) &&
         rows_aligned16(problem.q_rows) && rows_aligned16(problem.out_rows);
}

}  // namespace pavo::cuda
