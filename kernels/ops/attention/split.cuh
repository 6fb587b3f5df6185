// Splitting the K/V rows of a sequence over blocks: how many splits, where partial results lie, and
// the kernel that joins them.
#pragma once

#include "kernels/ops/attention/node.h"
#include "kernels/ops/attention/tile.cuh"

namespace pavo::cuda {

// More do not help: joining them costs time too.
constexpr int64_t kMaxSplits = 64;

// Splits that bring `blocks` blocks to `wanted`, at least one page each at the bucket's sizes.
// Fixed by the node and the chip, so that a captured launch stays valid.
inline int32_t attention_splits(const NodeQuery& query, int64_t blocks, int64_t wanted) {
  const int64_t pages = blocks_for(attention_kv_rows(query), PAVO_KV_PAGE_ROWS);
  const int64_t most = pages < kMaxSplits ? pages : kMaxSplits;
  const int64_t splits = wanted / (blocks > 0 ? blocks : 1);
  return static_cast<int32_t>(splits < most ? (splits > 1 ? splits : 1) : (most > 1 ? most : 1));
}

struct SplitWorkspace {
  int64_t states_offset;  // bytes
  int64_t bytes;
};

inline SplitWorkspace split_workspace(const NodeQuery& query, int64_t splits) {
  if (splits <= 1) {
    return {0, 0};
  }
  const pavo_tensor& out = *query.output(0);
  const int64_t rows = splits * out.shape[0] * out.shape[1];
  const int64_t sums = rows * out.shape[2] * static_cast<int64_t>(sizeof(float));
  const int64_t offset = pavo_align_up(sums, 16);
  return {offset, offset + rows * static_cast<int64_t>(sizeof(float2))};
}

inline void bind_splits(const KernelArgs& args, int32_t splits, AttentionProblem* problem) {
  problem->splits = splits;
  if (splits > 1) {
    const SplitWorkspace workspace = split_workspace(args.query, splits);
    problem->partial_sums = reinterpret_cast<float*>(args.workspace);
    problem->partial_states = reinterpret_cast<float2*>(args.workspace + workspace.states_offset);
  }
}

// out[t,h] = sum over splits of sums * exp(largest - all's largest), divided by all weights. One
// block owns one head of one token.
template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    attention_join_kernel(AttentionProblem problem) {
  const int64_t row = blockIdx.x;
  const int64_t rows = gridDim.x;
  const int64_t token = row / problem.heads;
  const auto head = static_cast<int32_t>(row % problem.heads);
  const int32_t sequence = problem.sequence_of(token);
  bool written = false;  // padding has no partial results
  if (sequence >= 0) {
    const TokenRange range = tokens_of(problem, sequence);
    written = token >= range.begin && token < range.end;
  }
  SoftmaxState state;
  if (written) {
    for (int32_t s = 0; s < problem.splits; ++s) {
      state.largest = fmaxf(state.largest, problem.partial_states[s * rows + row].x);
    }
    for (int32_t s = 0; s < problem.splits; ++s) {
      const float2 part = problem.partial_states[s * rows + row];
      state.sum = fmaf(part.y, softmax_weight(part.x, state.largest), state.sum);
    }
  }
  const float factor =
      softmax_factor(state, problem.sinks == nullptr ? nullptr : problem.sinks + head);
  float* out = problem.out + problem.out_rows.offset(row);
  for (auto d = static_cast<int32_t>(threadIdx.x); d < problem.value_dims; d += K::kThreads) {
    float sum = 0.0f;
    for (int32_t s = 0; written && s < problem.splits; ++s) {
      const float2 part = problem.partial_states[s * rows + row];
      if (part.y != 0.0f) {  // a split without rows wrote no sums
        const float value = problem.partial_sums[(s * rows + row) * problem.value_dims + d];
        sum = fmaf(value, softmax_weight(part.x, state.largest), sum);
      }
    }
    out[d] = sum * factor;
  }
}

// Joins partial results, if there are any.
template <typename Arch>
struct AttentionJoin {
  static constexpr const char* kName = "attention_join";
  static constexpr int kThreads = 64;
  static constexpr int kMinBlocksPerSm = 16;

  static cudaError_t launch(const KernelArgs& args, const AttentionProblem& problem) {
    return args.launcher.launch(
        kName,
        attention_join_kernel<AttentionJoin>,
        dim3(static_cast<uint32_t>(int64_t{problem.tokens} * problem.heads)),
        dim3(kThreads),
        0,
        problem);
  }
};

}  // namespace pavo::cuda
