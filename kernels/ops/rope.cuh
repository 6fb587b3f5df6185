// rope: turns pairs of the first rotary_dims values of each head by position * freq_i; the rest is
// copied.
//
//   freq_i = theta^(-2i / rotary_dims) / factors[i] * (freq_scale * (1 - u_i) + u_i)
//   u_i    = ext_factor * ramp(i), 0 without yarn
//
// x, out: f32 [T,H,D], rows anywhere; out may lie on x. positions: i32 [T], or [4,T] with sections;
// factors: dense f32 [P]. One block owns some heads of one token and computes each sine and cosine
// once for all of them. The turn is f64 up to its fraction, so that positions of millions keep the
// accuracy of f32; the rest is f32.
#pragma once

#include <cmath>

#include "kernels/common/checks.h"
#include "kernels/common/entry.h"
#include "kernels/common/rows.h"

namespace pavo::cuda {

// Everything of the parameters that does not depend on pair or position.
struct RopeTurns {
  double exponent_step;  // log2 of theta^(-2 / rotary_dims)
  double freq_scale;
  double ext_factor;
  double ramp_low;  // yarn: pairs up to here keep their frequency ...
  double ramp_inverse_width;
  int32_t pairs;
  int32_t section_ends[3];  // pairs before [0] use position row 0, before [1] row 1, ...
};

// The pair (as a real number) that turns `turns` times over the original context.
inline double rope_pair_of_turns(const pavo_rope_params& params, double turns) {
  constexpr double kTwoPi = 6.283185307179586476925286766559;
  return params.rotary_dims * std::log(params.original_context / (turns * kTwoPi)) /
         (2.0 * std::log(static_cast<double>(params.theta)));
}

inline RopeTurns rope_turns(const pavo_rope_params& params) {
  RopeTurns turns{};
  turns.pairs = params.rotary_dims / 2;
  turns.exponent_step = -2.0 / params.rotary_dims * std::log2(static_cast<double>(params.theta));
  turns.freq_scale = params.freq_scale;
  turns.ext_factor = params.ext_factor;
  if (params.ext_factor != 0.0f) {
    const double last = params.rotary_dims - 1;
    const double low = std::floor(rope_pair_of_turns(params, params.beta_fast));
    const double high = std::ceil(rope_pair_of_turns(params, params.beta_slow));
    turns.ramp_low = low > 0.0 ? low : 0.0;
    const double width = (high < last ? high : last) - turns.ramp_low;
    turns.ramp_inverse_width = 1.0 / (width > 0.001 ? width : 0.001);
  }
  const bool sections = params.mode == PAVO_ROPE_SECTIONS;
  turns.section_ends[0] = sections ? params.section_0 : turns.pairs;
  turns.section_ends[1] = turns.section_ends[0] + (sections ? params.section_1 : 0);
  turns.section_ends[2] = turns.section_ends[1] + (sections ? params.section_2 : 0);
  return turns;
}

// Row of the positions that pair i uses.
PAVO_HOST_DEVICE inline int32_t rope_position_row(const RopeTurns& turns, int32_t pair) {
  int32_t row = 0;
  for (int32_t i = 0; i < 3; ++i) {
    row += pair >= turns.section_ends[i] ? 1 : 0;
  }
  return row;
}

// The fraction of a full turn, -0.5..0.5, by which a pair is rotated.
PAVO_HOST_DEVICE inline float rope_fraction(
    const RopeTurns& turns, int32_t pair, const float* factors, int32_t position) {
  constexpr double kInverseTwoPi = 0.15915494309189533576888376337251;
  double per_position = exp2(turns.exponent_step * pair) * kInverseTwoPi;
  if (factors != nullptr) {
    per_position /= static_cast<double>(factors[pair]);
  }
  double blend = turns.freq_scale;
  if (turns.ext_factor != 0.0) {
    const double ramp = (pair - turns.ramp_low) * turns.ramp_inverse_width;
    const double unscaled = turns.ext_factor * (1.0 - (ramp < 0.0 ? 0.0 : ramp > 1.0 ? 1.0 : ramp));
    blend = turns.freq_scale * (1.0 - unscaled) + unscaled;
  }
  const double whole = per_position * blend * position;
  return static_cast<float>(whole - rint(whole));
}

struct RopeData {
  const float* x;
  const int32_t* positions;
  const float* factors;  // NULL: 1
  float* out;
  RowMap x_rows, out_rows;  // rows of [T*H, D]
  RopeTurns turns;
  int64_t position_row_stride;  // elements
  int32_t heads;
  int32_t heads_per_block;
  float magnitude;
  bool adjacent;  // pairs (2i, 2i+1), not (i, i+P)
};

inline RopeData rope_data(const KernelArgs& args) {
  const auto& params = args.params<pavo_rope_params>();
  const Operand x = args.input(0), positions = args.input(1), out = args.output(0);
  RopeData data{};
  data.x = x.as<float>();
  data.positions = positions.as<int32_t>();
  data.factors = args.input(2).as<float>();
  data.out = out.as<float>();
  data.x_rows = row_map(*x.tensor);
  data.out_rows = row_map(*out.tensor);
  data.turns = rope_turns(params);
  data.position_row_stride = positions.tensor->rank == 2 ? positions.tensor->stride[0] / 4 : 0;
  data.heads = static_cast<int32_t>(x.dim(1));
  data.magnitude = params.magnitude;
  data.adjacent = params.mode == PAVO_ROPE_NORMAL;
  return data;
}

inline bool rope_sections_fit(const pavo_rope_params& params, Checker& check) {
  if (params.mode != PAVO_ROPE_SECTIONS) {
    return true;
  }
  const int64_t pairs = params.rotary_dims / 2;
  int64_t sum = 0;
  for (const int32_t section :
       {params.section_0, params.section_1, params.section_2, params.section_3}) {
    if (!check.param_range(offsetof(pavo_rope_params, section_0), "section", section, 0, pairs)) {
      return false;
    }
    sum += section;
  }
  return check.param_range(
      offsetof(pavo_rope_params, section_0), "the sum of sections", sum, pairs, pairs);
}

inline bool rope_params_fit(const NodeQuery& query, Checker& check, pavo_verdict* verdict) {
  const auto& params = query.params<pavo_rope_params>();
  constexpr auto kDims = offsetof(pavo_rope_params, rotary_dims);
  if (!check.param_range(kDims, "rotary_dims", params.rotary_dims, 2, query.input(0)->shape[2]) ||
      !check.param_finite(offsetof(pavo_rope_params, theta), "theta", params.theta) ||
      !check.param_finite(offsetof(pavo_rope_params, freq_scale), "scale", params.freq_scale) ||
      !check.param_finite(offsetof(pavo_rope_params, ext_factor), "factor", params.ext_factor) ||
      !check.param_finite(offsetof(pavo_rope_params, magnitude), "magnitude", params.magnitude)) {
    return false;
  }
  const bool even = params.rotary_dims % 2 == 0;
  const bool yarn = params.ext_factor != 0.0f;
  const bool yarn_fits = params.theta > 1.0f && params.beta_fast > 0.0f &&
                         std::isfinite(params.beta_fast) && params.beta_slow > 0.0f &&
                         std::isfinite(params.beta_slow) && params.original_context > 0;
  if (!even || params.theta <= 0.0f || (yarn && !yarn_fits)) {
    return sdk::refuse(
        verdict,
        PAVO_REASON_PARAM,
        -1,
        !even ? static_cast<int32_t>(kDims)
              : static_cast<int32_t>(offsetof(pavo_rope_params, theta)),
        2,
        params.rotary_dims,
        "expected even rotary_dims, theta > 0, and for yarn theta > 1, betas and context > 0");
  }
  return rope_sections_fit(params, check);
}

inline bool rope_supports(const NodeQuery& query, pavo_verdict* verdict) {
  Checker check(query, verdict);
  const auto& params = query.params<pavo_rope_params>();
  const uint32_t out = check.output(0);
  if (!check.present(0) || !check.present(1) || !check.rank(0, 3) || !check.activations({0, out}) ||
      !check.same_shape(out, 0) || !check.indices({1}) ||
      !check.param_range(
          offsetof(pavo_rope_params, mode),
          "mode",
          params.mode,
          PAVO_ROPE_NORMAL,
          PAVO_ROPE_SECTIONS)) {
    return false;
  }
  const bool sections = params.mode == PAVO_ROPE_SECTIONS;
  return check.rank(1, sections ? 2 : 1) && (!sections || check.dim(1, 0, 4, "position rows")) &&
         check.dim(1, sections ? 1 : 0, query.input(0)->shape[0], "T of x") &&
         rope_params_fit(query, check, verdict) && check.dense_weight(2, params.rotary_dims / 2);
}

// Grid: x tokens, y groups of heads.
template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    rope_token_kernel(RopeData data) {
  __shared__ float2 rotation[K::kThreads];  // cosine, sine
  const int64_t token = blockIdx.x;
  const int32_t thread = static_cast<int32_t>(threadIdx.x);
  const int32_t first_head = static_cast<int32_t>(blockIdx.y) * data.heads_per_block;
  const int32_t heads = min(data.heads_per_block, data.heads - first_head);
  const int64_t first_row = token * data.heads + first_head;
  const int32_t pairs = data.turns.pairs;

  for (int32_t begin = 0; begin < pairs; begin += K::kThreads) {
    const int32_t count = min(K::kThreads, pairs - begin);
    if (thread < count) {
      const int32_t pair = begin + thread;
      const int64_t row = rope_position_row(data.turns, pair);
      const int32_t position = data.positions[row * data.position_row_stride + token];
      float sine, cosine;
      sincospif(2.0f * rope_fraction(data.turns, pair, data.factors, position), &sine, &cosine);
      rotation[thread] = make_float2(cosine * data.magnitude, sine * data.magnitude);
    }
    __syncthreads();
    for (int32_t i = thread; i < heads * count; i += K::kThreads) {
      const int32_t in_chunk = i % count;
      const int32_t pair = begin + in_chunk;
      const int64_t row = first_row + i / count;
      const float* x = data.x + data.x_rows.offset(row);
      float* out = data.out + data.out_rows.offset(row);
      const int32_t first = data.adjacent ? 2 * pair : pair;
      const int32_t second = data.adjacent ? first + 1 : pair + pairs;
      const float a = x[first], b = x[second];
      const float2 turn = rotation[in_chunk];
      out[first] = a * turn.x - b * turn.y;
      out[second] = a * turn.y + b * turn.x;
    }
    __syncthreads();  // rotation is free for the next pairs
  }
  const int64_t rest = data.x_rows.columns - 2 * pairs;
  for (int64_t i = thread; i < heads * rest; i += K::kThreads) {
    const int64_t row = first_row + i / rest;
    const int64_t column = 2 * pairs + i % rest;
    data.out[data.out_rows.offset(row) + column] = data.x[data.x_rows.offset(row) + column];
  }
}

template <typename Arch>
struct RopeToken {
  static constexpr const char* kName = "rope_token";
  static constexpr int32_t kOp = pavo_op_rope;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int64_t kMaxHeads = kMaxGridYz;
  // In-block counts (heads * pairs) are 32-bit.
  static constexpr int64_t kMaxDims = 16384;
  // From this many tokens on they fill a chip; fewer are split by heads, at the price of computing
  // the angles again in each block.
  static constexpr int64_t kTokensThatFill = 64;
  static constexpr int32_t kHeadsOfSplit = 4;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    return rope_supports(query, verdict) && check.dim_range(0, 0, 0, kMaxGridX) &&
           check.dim_range(0, 1, 0, kMaxHeads) && check.dim_range(0, 2, 0, kMaxDims);
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) {
    return {operand_bytes(query), 3.0 * static_cast<double>(sdk::element_count(*query.input(0)))};
  }
  static cudaError_t launch(const KernelArgs& args) {
    RopeData data = rope_data(args);
    const int64_t tokens = args.input(0).dim(0);
    if (tokens == 0 || data.heads == 0) {
      return cudaSuccess;
    }
    data.heads_per_block = tokens >= kTokensThatFill ? data.heads : kHeadsOfSplit;
    return args.launcher.launch(
        kName,
        rope_token_kernel<RopeToken>,
        dim3(
            static_cast<uint32_t>(tokens),
            static_cast<uint32_t>(blocks_for(data.heads, data.heads_per_block))),
        dim3(kThreads),
        0,
        data);
  }
};

template <typename Arch>
KernelList rope_kernels() {
  static constexpr Kernel kKernels[] = {entry<RopeToken<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
