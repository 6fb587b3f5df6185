// attention_prompt: many tokens a sequence.
//
// Grid: x tiles of 64 query vectors, the last (of a causal prompt the longest) first, y K/V heads,
// z splits. A block of 16 x 16 threads walks over the pages that hold rows its vectors see. Scores:
// 64 vectors x 64 rows in parts of 32 values, 4 x 4 a thread. Values: 32 rows x 64 columns at a
// time, 4 vectors x 4 columns a thread. The sums stay in registers, f32, first over 32 rows, then
// over all; each half-warp has all scores of its four vectors, so the softmax needs no barrier.
#pragma once

#include "kernels/ops/attention/generic.cuh"
#include "kernels/ops/attention/split.cuh"

namespace pavo::cuda {

template <typename K>
struct PromptShared {
  // Parts of queries and keys; when the scores are complete, the weights.
  float operands[2 * K::kSize * K::kScoreStride];
  float part[K::kValueRows * K::kValueStride];

  static_assert(2 * K::kScoreStride >= K::kWeightStride, "the weights have room");
  __device__ __forceinline__ float* queries() { return operands; }
  __device__ __forceinline__ float* keys() { return operands + K::kSize * K::kScoreStride; }
  __device__ __forceinline__ float* weights() { return operands; }
};

// The thread's eight values of a part of scale * q; zeros if there is no vector.
__device__ __forceinline__ void stage_query(
    const float* source, int32_t k, int32_t dims, float scale, float* target) {
  float4 a{}, b{};
  if (source != nullptr && k < dims) {
    a = load4(source + k);
    b = load4(source + k + 4);
  }
  const auto scaled = [&](float x) { return x * scale; };
  store4(target, map4(a, scaled));
  store4(target + 4, map4(b, scaled));
}

// Products of one part: vectors 4y.. with rows x, x + 16, ...
template <typename K>
__device__ __forceinline__ void prompt_dots(
    const float* queries, const float* keys, float (&dots)[4][4]) {
#pragma unroll 1
  for (int k = 0; k < K::kPartDims; k += 4) {
    float4 query[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      query[i] = load4(queries + i * K::kScoreStride + k);
    }
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const float4 key = load4(keys + 16 * j * K::kScoreStride + k);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        dots[i][j] = dot4(query[i], key, dots[i][j]);
      }
    }
  }
}

// sums = sums * correction + weights of 32 rows * their values, for 4 vectors x 4 columns.
template <typename K>
__device__ __forceinline__ void prompt_values(
    const float* weights, const float* values, const float* correction, float4 (&sums)[4]) {
  float4 part[4] = {};
#pragma unroll 1
  for (int row = 0; row < K::kValueRows; row += 4) {
    float4 value[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      value[r] = load4(values + (row + r) * K::kValueStride);
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float4 weight = load4(weights + i * K::kWeightStride + row);
      const float w[4] = {weight.x, weight.y, weight.z, weight.w};
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        part[i] = map4(value[r], part[i], [&](float v, float sum) { return fmaf(w[r], v, sum); });
      }
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    sums[i] =
        map4(sums[i], part[i], [&](float sum, float p) { return fmaf(sum, correction[i], p); });
  }
}

// Scores of 4 vectors, from `first` on, x 4 rows become weights; by a half-warp, which has all 64
// rows of its vectors. Gives the corrections of earlier sums.
template <typename K>
__device__ __forceinline__ void prompt_weights(
    TileVectors<K::kSize>& vectors, int first, float (&scores)[4][4], float (&correction)[4]) {
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    SoftmaxState state = vectors.state(first + i);
    const float largest =
        fmaxf(fmaxf(scores[i][0], scores[i][1]), fmaxf(scores[i][2], scores[i][3]));
    correction[i] = softmax_raise(state, warp_reduce<Max, 16>(largest));
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      scores[i][j] = softmax_weight(scores[i][j], state.largest);
      sum += scores[i][j];
    }
    state.sum += warp_reduce<Sum, 16>(sum);
    __syncwarp();  // all lanes have read the state
    if (threadIdx.x % 16 == 0) {
      vectors.set_state(first + i, state);
    }
  }
}

template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    attention_prompt_kernel(AttentionProblem problem) {
  __shared__ TileVectors<K::kSize> vectors;
  __shared__ __align__(16) PromptShared<K> shared;
  const auto kv_head = static_cast<int32_t>(blockIdx.y);
  const auto split = static_cast<int32_t>(blockIdx.z);
  if (problem.splits == 1) {
    clear_padding<K::kThreads>(problem, kv_head);
  }
  QueryTile tile;
  if (!find_query_tile(problem, gridDim.x - 1 - blockIdx.x, K::kSize, &tile)) {
    return;  // the whole block
  }
  vectors.fill(problem, tile, kv_head);

  const auto thread = static_cast<int>(threadIdx.x);
  const int x = thread % 16, y = thread / 16;
  const int unit_vector = thread / 4, unit_k = thread % 4 * 8;  // of a part of the queries
  const float* query = nullptr;
  if (vectors.token[unit_vector] >= 0) {
    const int64_t row =
        int64_t{vectors.token[unit_vector]} * problem.heads + vectors.head[unit_vector];
    query = problem.q + problem.q_rows.offset(row);
  }
  const int key_parts = (problem.key_dims + K::kPartDims - 1) / K::kPartDims;
  const int value_parts = (problem.value_dims + K::kValueColumns - 1) / K::kValueColumns;
  const int32_t first = vectors.first, last = vectors.last;
  const PageRange pages = pages_of_split(first, last, split, problem.splits);
  const auto rows_of = [&](const KvPool& pool, int32_t page) {
    return page_rows(problem, pool, tile.sequence, kv_head, page, first, last);
  };

  float4 sums[K::kMaxParts][4] = {};
  for (int32_t page = pages.begin; page < pages.end; ++page) {
    const PageRows keys = rows_of(problem.k, page);
    float scores[4][4] = {};
    for (int c = 0; c < key_parts; ++c) {
      __syncthreads();  // keys and queries are free
      stage_rows<LoadAgain, K::kThreads, PAVO_KV_PAGE_ROWS, K::kPartDims>(
          problem.k, keys, 0, c * K::kPartDims, shared.keys(), K::kScoreStride);
      stage_query(
          query,
          c * K::kPartDims + unit_k,
          problem.key_dims,
          problem.scale,
          shared.queries() + unit_vector * K::kScoreStride + unit_k);
      __syncthreads();
      prompt_dots<K>(
          shared.queries() + 4 * y * K::kScoreStride, shared.keys() + x * K::kScoreStride, scores);
    }
    const PageRows values = rows_of(problem.v, page);
    const bool readable = keys.head != nullptr && values.head != nullptr;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int32_t row = page * PAVO_KV_PAGE_ROWS + x + 16 * j;
        scores[i][j] = readable ? vectors.score(problem, 4 * y + i, row, scores[i][j]) : -INFINITY;
      }
    }
    float correction[4];
    prompt_weights<K>(vectors, 4 * y, scores, correction);
    __syncthreads();  // all scores are complete: the weights take the place of keys and queries
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        shared.weights()[(4 * y + i) * K::kWeightStride + x + 16 * j] = scores[i][j];
      }
    }
    for (int half = 0; half < PAVO_KV_PAGE_ROWS / K::kValueRows; ++half) {
#pragma unroll
      for (int c = 0; c < K::kMaxParts; ++c) {
        if (c < value_parts) {  // the same in the whole block
          __syncthreads();
          stage_rows<LoadAgain, K::kThreads, K::kValueRows, K::kValueColumns>(
              problem.v,
              values,
              half * K::kValueRows,
              c * K::kValueColumns,
              shared.part,
              K::kValueStride);
          __syncthreads();
          prompt_values<K>(
              shared.weights() + 4 * y * K::kWeightStride + half * K::kValueRows,
              shared.part + 4 * x,
              correction,
              sums[c]);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        correction[i] = 1.0f;  // applied with the first rows
      }
    }
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int32_t token = vectors.output[4 * y + i];
    if (token < 0) {
      continue;
    }
    const int32_t head = vectors.head[4 * y + i];
    const SoftmaxState state = vectors.state(4 * y + i);
    const ResultRow result = result_row(problem, token, head, split, state);
    if (x == 0) {
      write_state(problem, token, head, split, state);
    }
#pragma unroll
    for (int c = 0; c < K::kMaxParts; ++c) {
      const int column = c * K::kValueColumns + 4 * x;
      if (column < problem.value_dims) {
        store4(
            result.sums + column, map4(sums[c][i], [&](float sum) { return sum * result.factor; }));
      }
    }
  }
}

// kValueParts bounds Dv in units of 64: the sums are registers.
template <typename Arch, int kValueParts>
struct AttentionPrompt {
  static constexpr const char* kName = kValueParts == 1   ? "attention_prompt_64"
                                       : kValueParts == 2 ? "attention_prompt_128"
                                                          : "attention_prompt_256";
  static constexpr int32_t kOp = pavo_op_attention;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = 256;
  // 16 sums a part and 16 scores: 128 registers are enough for two parts.
  static constexpr int kMinBlocksPerSm = kValueParts <= 2 ? 2 : 1;
  static constexpr int kSize = 64;
  static constexpr int kPartDims = 32;
  static constexpr int kValueRows = 32;
  static constexpr int kValueColumns = 64;
  static constexpr int kMaxParts = kValueParts;
  static constexpr int kScoreStride = kPartDims + kRowPadding;
  static constexpr int kWeightStride = PAVO_KV_PAGE_ROWS + kRowPadding;
  static constexpr int kValueStride = kValueColumns + kRowPadding;
  static_assert(kThreads == 4 * kSize && kSize == PAVO_KV_PAGE_ROWS);

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    return attention_tiles_fit(query, verdict, int64_t{kMaxParts} * kValueColumns) &&
           AttentionGeneric<Arch>::supports(query, verdict) &&
           check.shared_bytes(
               int64_t{sizeof(PromptShared<AttentionPrompt>)} +
               int64_t{sizeof(TileVectors<kSize>)});
  }
  static int64_t workspace_bytes(const NodeQuery& query) {
    return split_workspace(query, splits(query)).bytes;
  }
  static Cost cost(const NodeQuery& query) { return attention_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    AttentionProblem problem = attention_problem(args);
    if (!attention_aligned(problem)) {
      return AttentionGeneric<Arch>::launch(args);
    }
    bind_splits(args, splits(args.query), &problem);
    const cudaError_t error = args.launcher.launch(
        kName,
        attention_prompt_kernel<AttentionPrompt>,
        dim3(
            static_cast<uint32_t>(attention_tiles(args.query, kSize)),
            static_cast<uint32_t>(problem.k.heads),
            static_cast<uint32_t>(problem.splits)),
        dim3(kThreads),
        0,
        problem);
    return error != cudaSuccess || problem.splits == 1 ? error
                                                       : AttentionJoin<Arch>::launch(args, problem);
  }

 private:
  static int32_t splits(const NodeQuery& query) {
    const int64_t blocks =
        attention_tiles(query, kSize) * query.input(attention_input::kK)->shape[1];
    return attention_splits(query, blocks, int64_t{kMinBlocksPerSm} * query.caps.sm_count);
  }
};

}  // namespace pavo::cuda
