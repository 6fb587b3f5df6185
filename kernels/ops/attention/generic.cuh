// attention_generic: every shape, type and option of the op.
//
// One block owns one head of one token and walks over its K/V rows (or its row list) in tiles
// of 64. Scores: one warp a row, lanes over D. Values: one thread a column, columns kThreads apart.
// Sums are f32, first over a tile, then over tiles.
#pragma once

#include "kernels/common/entry.h"
#include "kernels/common/reduce.cuh"
#include "kernels/ops/attention/node.h"

namespace pavo::cuda {

// One tile of candidate rows.
struct GenericTile {
  static constexpr int kRows = 64;
  int32_t row[kRows];   // -1: not visible
  int32_t page[kRows];  // in the pools
  float score[kRows];
  float weight[kRows];
};

// Entries of the row list before its end. All threads must take part.
template <int kThreads>
__device__ __forceinline__ int32_t list_entries(const int32_t* list, int32_t columns) {
  __shared__ int32_t end;
  if (threadIdx.x == 0) {
    end = columns;
  }
  __syncthreads();
  for (int32_t i = static_cast<int32_t>(threadIdx.x); i < columns; i += kThreads) {
    if (list[i] < 0) {
      atomicMin(&end, i);
      break;
    }
  }
  __syncthreads();
  return end;
}

// The part of a block's work that stays the same from tile to tile.
struct GenericQuery {
  const AttentionProblem& problem;
  int64_t token;
  int32_t head, kv_head, sequence, length;
  VisibleRows visible;
  float slope;

  __device__ GenericQuery(const AttentionProblem& all, int64_t index)
      : problem(all),
        token(index / all.heads),
        head(static_cast<int32_t>(index % all.heads)),
        kv_head(head / all.group),
        sequence(all.sequence_of(token)),
        length(sequence < 0 ? 0 : all.length_of(sequence)),
        visible(visible_rows(all, token, length)),
        slope(all.slopes == nullptr ? 0.0f : all.slopes[head]) {}

  __device__ __forceinline__ void find_row(GenericTile& tile, int32_t slot, int32_t i) const {
    const int32_t row =
        problem.row_list == nullptr ? i : problem.row_list[token * problem.list_stride + i];
    const bool seen = row >= visible.first && row < visible.last;
    const int32_t page = seen ? problem.page_of(sequence, row / PAVO_KV_PAGE_ROWS) : -1;
    tile.page[slot] = page;
    tile.row[slot] = page >= 0 && page < problem.k.pages && page < problem.v.pages ? row : -1;
  }

  __device__ __forceinline__ float finish(float dot, int32_t row) const {
    float score = finish_score(problem, dot, slope, row, visible.own);
    if (problem.mask != nullptr) {
      const int32_t column = row - (length - problem.mask_columns);
      score += column < 0 ? 0.0f : problem.mask[token * problem.mask_stride + column];
    }
    return score;
  }
};

// q.k of one row for each lane's share of the columns.
__device__ __forceinline__ float generic_dot(
    const KvPool& pool, const std::byte* head, int32_t row, const float* query) {
  float sum = 0.0f;
  with_kv_type(pool.type, [&](auto codec) {
    for (int32_t k = static_cast<int32_t>(threadIdx.x % 32); k < pool.dims; k += 32) {
      sum = fmaf(query[k], codec.template value<LoadAgain>(pool, head, row, k), sum);
    }
  });
  return sum;
}

// sums = sums * correction + the tile's weighted values, for the thread's columns.
template <typename K>
__device__ __forceinline__ void generic_values(
    const GenericQuery& query, const GenericTile& tile, float correction, float* sums) {
  const KvPool& pool = query.problem.v;
  const int32_t columns = query.problem.value_dims;
  float part[K::kColumns] = {};
  with_kv_type(pool.type, [&](auto codec) {
    for (int32_t slot = 0; slot < GenericTile::kRows; ++slot) {
      const float weight = tile.weight[slot];
      if (weight == 0.0f) {  // also what is not visible
        continue;
      }
      const std::byte* head = pool.head(tile.page[slot], query.kv_head);
      const int32_t row = tile.row[slot] % PAVO_KV_PAGE_ROWS;
#pragma unroll
      for (int i = 0; i < K::kColumns; ++i) {
        const int32_t column = i * K::kThreads + static_cast<int32_t>(threadIdx.x);
        if (column < columns) {
          part[i] = fmaf(weight, codec.template value<LoadAgain>(pool, head, row, column), part[i]);
        }
      }
    }
  });
#pragma unroll
  for (int i = 0; i < K::kColumns; ++i) {
    sums[i] = fmaf(sums[i], correction, part[i]);
  }
}

template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    attention_generic_kernel(AttentionProblem problem) {
  constexpr int kWarps = K::kThreads / 32;
  __shared__ float scaled_query[K::kMaxDims];
  __shared__ GenericTile tile;
  const GenericQuery query(problem, blockIdx.x);
  const auto thread = static_cast<int32_t>(threadIdx.x);
  const int32_t lane = thread % 32;
  const float* q = problem.q + problem.q_rows.offset(blockIdx.x);
  for (int32_t k = thread; k < problem.key_dims; k += K::kThreads) {
    scaled_query[k] = q[k] * problem.scale;
  }
  int32_t begin = query.visible.first, end = query.visible.last;
  if (problem.row_list != nullptr && begin < end) {  // the same in the whole block
    begin = 0;
    end = list_entries<K::kThreads>(
        problem.row_list + query.token * problem.list_stride, problem.list_columns);
  }

  SoftmaxState state;
  float sums[K::kColumns] = {};
  for (int32_t first = begin; first < end; first += GenericTile::kRows) {
    if (thread < GenericTile::kRows) {
      tile.row[thread] = -1;
      if (thread < end - first) {
        query.find_row(tile, thread, first + thread);
      }
    }
    __syncthreads();
    for (int32_t slot = thread / 32; slot < GenericTile::kRows; slot += kWarps) {
      const int32_t row = tile.row[slot];
      float score = -INFINITY;
      if (row >= 0) {  // the same in the whole warp
        const std::byte* head = problem.k.head(tile.page[slot], query.kv_head);
        const float dot = generic_dot(problem.k, head, row % PAVO_KV_PAGE_ROWS, scaled_query);
        score = query.finish(warp_reduce<Sum>(dot), row);
      }
      if (lane == 0) {
        tile.score[slot] = score;
      }
    }
    __syncthreads();
    // Each warp reduces all scores by itself; warp 0 writes the weights.
    const float a = tile.score[lane], b = tile.score[lane + 32];
    const float correction = softmax_raise(state, warp_reduce<Max>(fmaxf(a, b)));
    const float weight_a = softmax_weight(a, state.largest);
    const float weight_b = softmax_weight(b, state.largest);
    state.sum += warp_reduce<Sum>(weight_a + weight_b);
    if (thread < 32) {
      tile.weight[lane] = weight_a;
      tile.weight[lane + 32] = weight_b;
    }
    __syncthreads();
    generic_values<K>(query, tile, correction, sums);
    __syncthreads();  // the tile is free for the next rows
  }

  const float factor =
      softmax_factor(state, problem.sinks == nullptr ? nullptr : problem.sinks + query.head);
  float* out = problem.out + problem.out_rows.offset(blockIdx.x);
#pragma unroll
  for (int i = 0; i < K::kColumns; ++i) {
    const int32_t column = i * K::kThreads + thread;
    if (column < problem.value_dims) {
      out[column] = sums[i] * factor;
    }
  }
}

template <typename Arch>
struct AttentionGeneric {
  static constexpr const char* kName = "attention_generic";
  static constexpr int32_t kOp = pavo_op_attention;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocksPerSm = 6;
  static constexpr int kMaxDims = 1024;
  static constexpr int kColumns = kMaxDims / kThreads;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    using namespace attention_input;
    Checker check(query, verdict);
    return attention_fits(query, verdict) && check.dim_range(kQ, 2, 1, kMaxDims) &&
           check.dim_range(check.output(0), 2, 1, kMaxDims) &&
           check.dim_range(kQ, 0, 0, kMaxGridX / query.input(kQ)->shape[1]);
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) { return attention_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const AttentionProblem problem = attention_problem(args);
    return args.launcher.launch(
        kName,
        attention_generic_kernel<AttentionGeneric>,
        dim3(static_cast<uint32_t>(int64_t{problem.tokens} * problem.heads)),
        dim3(kThreads),
        0,
        problem);
  }
};

}  // namespace pavo::cuda
