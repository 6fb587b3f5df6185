// attention_decode: few tokens a sequence. The K/V rows of a sequence are split over blocks, and
// one pass over them serves up to kSize query vectors of a K/V head.
//
// Grid: x tiles of query vectors, y K/V heads, z splits; each block takes its share of the pages
// that hold rows its vectors see, as the lengths on the device say. A page is staged in parts of 64
// rows x 64 values. Scores: one thread a row, kSize / 2 vectors each. Values: one warp kSize / 4
// vectors, a lane two columns of each part. Sums are f32, first over a page, then over pages.
#pragma once

#include <cinttypes>

#include "kernels/common/dynamic_shared.cuh"
#include "kernels/ops/attention/generic.cuh"
#include "kernels/ops/attention/split.cuh"

namespace pavo::cuda {

// Shared memory of a block, in floats from its start.
template <typename K>
struct DecodeShared {
  int32_t query_stride;
  int32_t stage, weights, floats;

  PAVO_HOST_DEVICE explicit DecodeShared(int32_t key_dims)
      : query_stride((key_dims + K::kPartDims - 1) / K::kPartDims * K::kPartDims + kRowPadding),
        stage(K::kSize * query_stride),
        weights(stage + PAVO_KV_PAGE_ROWS * K::kStageStride),
        floats(weights + K::kSize * K::kWeightStride) {}
};

// scale * q of each vector, zeros for vectors and columns that are not there.
template <typename K>
__device__ __forceinline__ void decode_queries(
    const AttentionProblem& problem,
    const TileVectors<K::kSize>& vectors,
    float* queries,
    int stride) {
  const int row_units = (stride - kRowPadding) / 4;
  for (auto i = static_cast<int>(threadIdx.x); i < K::kSize * row_units; i += K::kThreads) {
    const int vector = i / row_units, k = i % row_units * 4;
    float4 value{};
    if (vectors.token[vector] >= 0 && k < problem.key_dims) {
      const int64_t row = int64_t{vectors.token[vector]} * problem.heads + vectors.head[vector];
      value = map4(load4(problem.q + problem.q_rows.offset(row) + k), [&](float x) {
        return x * problem.scale;
      });
    }
    store4(queries + vector * stride + k, value);
  }
}

template <typename K>
__device__ __forceinline__ void decode_stage(
    const KvPool& pool, const PageRows& rows, int part, float* stage) {
  stage_rows<LoadOnce<typename K::Chip>, K::kThreads, PAVO_KV_PAGE_ROWS, K::kPartDims>(
      pool, rows, 0, part * K::kPartDims, stage, K::kStageStride);
}

// Products of one staged part, for the thread's row and half of the vectors.
template <typename K>
__device__ __forceinline__ void decode_dots(
    const float* row, const float* queries, int query_stride, float* dots) {
#pragma unroll 2
  for (int k = 0; k < K::kPartDims; k += 4) {
    const float4 key = load4(row + k);
#pragma unroll
    for (int i = 0; i < K::kSize / 2; ++i) {
      dots[i] = dot4(key, load4(queries + i * query_stride + k), dots[i]);
    }
  }
}

// The 64 scores of vector i become weights; by one warp. Returns the correction of earlier sums.
template <typename K>
__device__ __forceinline__ float decode_weights(
    TileVectors<K::kSize>& vectors, int i, float* scores) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  SoftmaxState state = vectors.state(i);
  const float a = scores[lane], b = scores[lane + 32];
  const float correction = softmax_raise(state, warp_reduce<Max>(fmaxf(a, b)));
  const float weight_a = softmax_weight(a, state.largest);
  const float weight_b = softmax_weight(b, state.largest);
  state.sum += warp_reduce<Sum>(weight_a + weight_b);
  __syncwarp();  // all lanes have read the state
  if (lane == 0) {
    vectors.set_state(i, state);
  }
  scores[lane] = weight_a;
  scores[lane + 32] = weight_b;
  return correction;
}

// sums = sums * correction + weights * one staged part, for the lane's two columns.
template <typename K>
__device__ __forceinline__ void decode_values(
    const float* stage, const float* weights, const float* correction, float2* sums) {
  float2 part[K::kOwn] = {};
#pragma unroll 2
  for (int row = 0; row < PAVO_KV_PAGE_ROWS; row += 4) {
    float2 value[4];
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      value[r] = *reinterpret_cast<const float2*>(stage + (row + r) * K::kStageStride);
    }
#pragma unroll
    for (int i = 0; i < K::kOwn; ++i) {
      const float4 weight = load4(weights + i * K::kWeightStride + row);
      const float w[4] = {weight.x, weight.y, weight.z, weight.w};
#pragma unroll
      for (int r = 0; r < 4; ++r) {
        part[i].x = fmaf(w[r], value[r].x, part[i].x);
        part[i].y = fmaf(w[r], value[r].y, part[i].y);
      }
    }
  }
#pragma unroll
  for (int i = 0; i < K::kOwn; ++i) {
    sums[i].x = fmaf(sums[i].x, correction[i], part[i].x);
    sums[i].y = fmaf(sums[i].y, correction[i], part[i].y);
  }
}

template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    attention_decode_kernel(AttentionProblem problem) {
  __shared__ TileVectors<K::kSize> vectors;
  const auto kv_head = static_cast<int32_t>(blockIdx.y);
  const auto split = static_cast<int32_t>(blockIdx.z);
  if (problem.splits == 1) {
    clear_padding<K::kThreads>(problem, kv_head);
  }
  QueryTile tile;
  if (!find_query_tile(problem, blockIdx.x, K::kSize, &tile)) {
    return;  // the whole block
  }
  vectors.fill(problem, tile, kv_head);
  const DecodeShared<K> layout(problem.key_dims);
  float* queries = dynamic_shared();
  float* stage = queries + layout.stage;
  float* weights = queries + layout.weights;
  decode_queries<K>(problem, vectors, queries, layout.query_stride);

  const auto thread = static_cast<int>(threadIdx.x);
  const int row = thread % PAVO_KV_PAGE_ROWS;
  const int scored = thread / PAVO_KV_PAGE_ROWS * (K::kSize / 2);  // first vector of scores
  const int own = thread / 32 * K::kOwn;                           // first vector of values
  const int key_parts = (problem.key_dims + K::kPartDims - 1) / K::kPartDims;
  const int value_parts = (problem.value_dims + K::kPartDims - 1) / K::kPartDims;
  const int32_t first = vectors.first, last = vectors.last;
  const PageRange pages = pages_of_split(first, last, split, problem.splits);
  const auto rows_of = [&](const KvPool& pool, int32_t page) {
    return page_rows(problem, pool, tile.sequence, kv_head, page, first, last);
  };

  float2 sums[K::kMaxParts][K::kOwn] = {};
  for (int32_t page = pages.begin; page < pages.end; ++page) {
    const PageRows keys = rows_of(problem.k, page);
    float dots[K::kSize / 2] = {};
    for (int c = 0; c < key_parts; ++c) {
      __syncthreads();  // the stage is free
      decode_stage<K>(problem.k, keys, c, stage);
      __syncthreads();
      decode_dots<K>(
          stage + row * K::kStageStride,
          queries + scored * layout.query_stride + c * K::kPartDims,
          layout.query_stride,
          dots);
    }
    const PageRows values = rows_of(problem.v, page);
    const bool readable = keys.head != nullptr && values.head != nullptr;
#pragma unroll
    for (int i = 0; i < K::kSize / 2; ++i) {
      weights[(scored + i) * K::kWeightStride + row] =
          readable ? vectors.score(problem, scored + i, page * PAVO_KV_PAGE_ROWS + row, dots[i])
                   : -INFINITY;
    }
    __syncthreads();
    float correction[K::kOwn];
#pragma unroll
    for (int i = 0; i < K::kOwn; ++i) {
      correction[i] = decode_weights<K>(vectors, own + i, weights + (own + i) * K::kWeightStride);
    }
#pragma unroll
    for (int c = 0; c < K::kMaxParts; ++c) {
      if (c < value_parts) {  // the same in the whole block
        __syncthreads();
        decode_stage<K>(problem.v, values, c, stage);
        __syncthreads();
        decode_values<K>(
            stage + thread % 32 * 2, weights + own * K::kWeightStride, correction, sums[c]);
      }
    }
  }

#pragma unroll
  for (int i = 0; i < K::kOwn; ++i) {
    const int32_t token = vectors.output[own + i];
    if (token < 0) {
      continue;
    }
    const int32_t head = vectors.head[own + i];
    const SoftmaxState state = vectors.state(own + i);
    const ResultRow result = result_row(problem, token, head, split, state);
    if (thread % 32 == 0) {
      write_state(problem, token, head, split, state);
    }
#pragma unroll
    for (int c = 0; c < K::kMaxParts; ++c) {
      const int column = c * K::kPartDims + thread % 32 * 2;
      if (column < problem.value_dims) {
        *reinterpret_cast<float2*>(result.sums + column) =
            make_float2(sums[c][i].x * result.factor, sums[c][i].y * result.factor);
      }
    }
  }
}

// kVectors: query vectors of a block; kValueParts bounds Dv in units of 64.
template <typename Arch, int kVectors, int kValueParts>
struct AttentionDecode {
  using Chip = Arch;
  static constexpr const char* kName = kVectors == 4   ? "attention_decode_4"
                                       : kVectors == 8 ? "attention_decode_8"
                                                       : "attention_decode_16";
  static constexpr int32_t kOp = pavo_op_attention;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = 128;
  // More have no room in shared memory with 16 vectors; with fewer, 128 registers are enough.
  static constexpr int kMinBlocksPerSm = kVectors == 16 ? 3 : 4;
  static constexpr int kSize = kVectors;
  static constexpr int kOwn = kSize / (kThreads / 32);
  static constexpr int kPartDims = 64;
  static constexpr int kMaxParts = kValueParts;
  static constexpr int kStageStride = kPartDims + kRowPadding;
  static constexpr int kWeightStride = PAVO_KV_PAGE_ROWS + kRowPadding;
  static constexpr int64_t kMaxTokensPerSequence = 16;
  static_assert(kThreads == 2 * PAVO_KV_PAGE_ROWS && kSize % (kThreads / 32) == 0);

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    using namespace attention_input;
    Checker check(query, verdict);
    if (!attention_tiles_fit(query, verdict, int64_t{kMaxParts} * kPartDims) ||
        !AttentionGeneric<Arch>::supports(query, verdict)) {
      return false;
    }
    const int64_t key_dims = query.input(kQ)->shape[2];
    return check.dim_range(kQ, 0, 0, kMaxTokensPerSequence * attention_sequences(query)) &&
           check.shared_bytes(shared_bytes(key_dims) + int64_t{sizeof(TileVectors<kSize>)}) &&
           fits_vectors(query, verdict);
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
        attention_decode_kernel<AttentionDecode>,
        dim3(
            static_cast<uint32_t>(attention_tiles(args.query, kSize)),
            static_cast<uint32_t>(problem.k.heads),
            static_cast<uint32_t>(problem.splits)),
        dim3(kThreads),
        static_cast<size_t>(shared_bytes(problem.key_dims)),
        problem);
    return error != cudaSuccess || problem.splits == 1 ? error
                                                       : AttentionJoin<Arch>::launch(args, problem);
  }

 private:
  static int64_t shared_bytes(int64_t key_dims) {
    return DecodeShared<AttentionDecode>(static_cast<int32_t>(key_dims)).floats *
           static_cast<int64_t>(sizeof(float));
  }
  static int32_t splits(const NodeQuery& query) {
    const int64_t blocks =
        attention_tiles(query, kSize) * query.input(attention_input::kK)->shape[1];
    return attention_splits(query, blocks, int64_t{kMinBlocksPerSm} * query.caps.sm_count);
  }
  // Tiles that fit best come first in the list: 4 for up to 4 vectors, 16 for more than 8, 8 for
  // the rest and where 16 have no room.
  static bool fits_vectors(const NodeQuery& query, pavo_verdict* verdict) {
    const pavo_tensor& q = *query.input(attention_input::kQ);
    const int64_t group = attention_group(query);
    const int64_t used = attention_sequences(query) > 0 ? attention_sequences(query) : 1;
    const int64_t vectors = blocks_for(q.shape[0], used) * group;
    const bool fits = kSize == 8 || (kSize < 8 ? vectors <= kSize : vectors > 8);
    return fits || sdk::refuse(
                       verdict,
                       PAVO_REASON_SHAPE_RANGE,
                       0,
                       0,
                       kSize,
                       vectors,
                       "a tile of %d is not the best for %" PRId64 " query vectors a K/V head",
                       kSize,
                       vectors);
  }
};

}  // namespace pavo::cuda
