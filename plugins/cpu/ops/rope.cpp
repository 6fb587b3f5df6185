// rope: sine and cosine of a token's angles once, then all of its heads.
#include <cstdint>
#include <cstring>
#include <numbers>

#include "plugins/cpu/dequantize.h"
#include "plugins/cpu/kernel.h"
#include "plugins/cpu/ops/row_parts.h"
#include "plugins/cpu/rope_frequencies.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/ops/rope.cpp"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include <hwy/contrib/math/math-inl.h>

#include "plugins/cpu/ops/elementwise-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

// Angles are reduced to half a turn in f64, so that far positions keep their phase; the rest is
// f32.
template <class D>
HWY_INLINE void turn_vector(
    D d, const double* angles, float magnitude, float* cosines, float* sines) {
  const hn::Rebind<float, D> df;
  const auto angle = hn::LoadU(d, angles);
  const auto turns = hn::Round(hn::Mul(angle, hn::Set(d, 0.5 / std::numbers::pi)));
  const auto whole = hn::Mul(turns, hn::Set(d, 2 * std::numbers::pi));
  const auto reduced = hn::DemoteTo(df, hn::Sub(angle, whole));
  const auto scale = hn::Set(df, magnitude);
  hn::StoreU(hn::Mul(hn::Cos(df, reduced), scale), df, cosines);
  hn::StoreU(hn::Mul(hn::Sin(df, reduced), scale), df, sines);
}

// cosines[i], sines[i] = magnitude * cos, sin of angles[i].
void rope_turns(
    const double* angles, int64_t pairs, float magnitude, float* cosines, float* sines) {
  const hn::ScalableTag<double> d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + width <= pairs; i += width) {
    turn_vector(d, angles + i, magnitude, cosines + i, sines + i);
  }
  for (; i < pairs; ++i) {
    turn_vector(hn::CappedTag<double, 1>(), angles + i, magnitude, cosines + i, sines + i);
  }
}

// Pairs (i, i + pairs).
HWY_INLINE void rotate_halves(
    const float* x, const float* cosines, const float* sines, int64_t pairs, float* out) {
  for_each_vector(pairs, [&](auto d, int64_t i) HWY_ATTR {
    const auto c = hn::LoadU(d, cosines + i);
    const auto s = hn::LoadU(d, sines + i);
    const auto a = hn::LoadU(d, x + i);
    const auto b = hn::LoadU(d, x + pairs + i);
    hn::StoreU(hn::Sub(hn::Mul(a, c), hn::Mul(b, s)), d, out + i);
    hn::StoreU(hn::Add(hn::Mul(a, s), hn::Mul(b, c)), d, out + pairs + i);
  });
}

// Pairs (2 i, 2 i + 1).
HWY_INLINE void rotate_neighbours(
    const float* x, const float* cosines, const float* sines, int64_t pairs, float* out) {
  for_each_vector(pairs, [&](auto d, int64_t i) HWY_ATTR {
    const auto c = hn::LoadU(d, cosines + i);
    const auto s = hn::LoadU(d, sines + i);
    hn::Vec<decltype(d)> a;
    hn::Vec<decltype(d)> b;
    hn::LoadInterleaved2(d, x + 2 * i, a, b);
    const auto first = hn::Sub(hn::Mul(a, c), hn::Mul(b, s));
    const auto second = hn::Add(hn::Mul(a, s), hn::Mul(b, c));
    hn::StoreInterleaved2(first, second, d, out + 2 * i);
  });
}

void rope_head(
    bool neighbours,
    const float* x,
    const float* cosines,
    const float* sines,
    int64_t pairs,
    float* out) {
  if (neighbours) {
    rotate_neighbours(x, cosines, sines, pairs, out);
  } else {
    rotate_halves(x, cosines, sines, pairs, out);
  }
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pavo::cpu {
namespace {

HWY_EXPORT(rope_turns);
HWY_EXPORT(rope_head);

// What all tokens share.
struct RopeProblem {
  const pavo_rope_params& params;
  Operand x;
  Operand positions;
  Operand out;
  int64_t pairs;
  const double* frequencies;

  // angles[0..pairs) of token t.
  void angles_of(int64_t t, double* angles) const {
    const pavo_tensor& tensor = *positions.tensor;
    const bool rows = tensor.rank == 2;
    const std::byte* own = positions.data + t * tensor.stride[rows ? 1 : 0];
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t offset = rows ? rope_position_row(params, i) * tensor.stride[0] : 0;
      angles[i] = *reinterpret_cast<const int32_t*>(own + offset) * frequencies[i];
    }
  }

  void rotate(int64_t t, const float* cosines, const float* sines) const {
    const bool neighbours = params.mode == PAVO_ROPE_NORMAL;
    const int64_t rest = (x.dim(2) - 2 * pairs) * static_cast<int64_t>(sizeof(float));
    const auto kernel = HWY_DYNAMIC_DISPATCH(rope_head);
    for (int64_t h = 0; h < x.dim(1); ++h) {
      const float* source = row_of(x, t * x.dim(1) + h);
      float* target = row_of(out, t * x.dim(1) + h);
      kernel(neighbours, source, cosines, sines, pairs, target);
      std::memcpy(target + 2 * pairs, source + 2 * pairs, static_cast<size_t>(rest));
    }
  }
};

struct RopeRows {
  static constexpr const char* kName = "rope_rows";
  static constexpr int32_t kOp = pavo_op_rope;
  static constexpr int32_t kDecision = PAVO_ACCEPT;

  // Whatever the reference takes.
  static bool supports(const NodeQuery& /*query*/, pavo_verdict* /*verdict*/) { return true; }

  // Frequencies (f64) and factors; then per thread angles (f64), cosines and sines.
  static int64_t part_bytes(int64_t pairs) {
    return pairs * static_cast<int64_t>(sizeof(double) + 2 * sizeof(float));
  }
  static int64_t workspace_bytes(const NodeQuery& query) {
    return (1 + query.options.threads) *
           part_bytes(query.params<pavo_rope_params>().rotary_dims / 2);
  }

  static int32_t launch(const KernelArgs& args, pavo_error* /*error*/) {
    const auto& params = args.params<pavo_rope_params>();
    const int64_t pairs = params.rotary_dims / 2;
    auto* frequencies = reinterpret_cast<double*>(args.workspace);
    auto* factors = reinterpret_cast<float*>(frequencies + pairs);
    if (const Operand weight = args.input(2)) {
      dequantize_row(weight.tensor->type, weight.data, pairs, factors);
    } else {
      factors = nullptr;
    }
    rope_frequencies(params, factors, frequencies);
    const RopeProblem problem = {
        params, args.input(0), args.input(1), args.output(0), pairs, frequencies};
    const auto turns = HWY_DYNAMIC_DISPATCH(rope_turns);
    const int64_t grain = row_grain(problem.x.dim(1) * problem.x.dim(2));
    args.pool.parallel_for(
        problem.x.dim(0), grain, [&](int64_t begin, int64_t end, int32_t thread) {
          auto* angles =
              reinterpret_cast<double*>(args.workspace + (1 + thread) * part_bytes(pairs));
          auto* cosines = reinterpret_cast<float*>(angles + pairs);
          float* sines = cosines + pairs;
          for (int64_t t = begin; t < end; ++t) {
            problem.angles_of(t, angles);
            turns(angles, pairs, params.magnitude, cosines, sines);
            problem.rotate(t, cosines, sines);
          }
        });
    return PAVO_OK;
  }
};

}  // namespace

std::span<const Kernel> rope_kernels() {
  static constexpr Kernel kKernels[] = {entry<RopeRows>()};
  return kKernels;
}

}  // namespace pavo::cpu
#endif  // HWY_ONCE
