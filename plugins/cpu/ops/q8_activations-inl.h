// Activations as int8: blocks of 32 values with one f32 scale, and scale * (sum of the codes), over
// the block or over each half of it, for the weight formats that have an offset.
#if defined(PAVO_PLUGINS_CPU_OPS_Q8_ACTIVATIONS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAVO_PLUGINS_CPU_OPS_Q8_ACTIVATIONS_INL_H_
#undef PAVO_PLUGINS_CPU_OPS_Q8_ACTIVATIONS_INL_H_
#else
#define PAVO_PLUGINS_CPU_OPS_Q8_ACTIVATIONS_INL_H_
#endif

#include "plugins/cpu/ops/simd-inl.h"

#if PAVO_CPU_HAVE_SIMD
HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

struct BlockScale {
  float scale;
  float sums[2];  // scale * sum of codes 0..15, 16..31
};

HWY_INLINE float sum_codes(VecI32 v) {
  return static_cast<float>(hn::GetLane(hn::SumOfLanes(TagI32(), v)));
}

// Quantises 32 values: codes 0..15 to `lower`, 16..31 to `upper`, each round(x / scale) with
// scale = max|x| / 127. A block with an infinity or a NaN gets the scale NaN and codes 0, so that
// it is not lost.
HWY_INLINE BlockScale
quantize_block(const float* x, int8_t* HWY_RESTRICT lower, int8_t* HWY_RESTRICT upper) {
  constexpr int64_t kVectors = 32 / kLanes;
  // Below this, 127 / max would overflow; such values are zero for every purpose.
  constexpr float kSmallest = 1e-36f;
  const TagF32 d;
  const hn::Rebind<int8_t, TagF32> d8;
  VecF32 v[kVectors];
  auto largest = hn::Zero(d);
  auto poison = hn::Zero(d);  // NaN where a value is not finite
  for (int64_t i = 0; i < kVectors; ++i) {
    v[i] = hn::LoadU(d, x + i * kLanes);
    largest = hn::Max(largest, hn::Abs(v[i]));
    poison = hn::Add(poison, hn::Sub(v[i], v[i]));
  }
  const float amax = hn::GetLane(hn::MaxOfLanes(d, largest));
  const float bad = hn::GetLane(hn::SumOfLanes(d, poison));
  if (bad != bad) {
    __builtin_memset(lower, 0, 16);
    __builtin_memset(upper, 0, 16);
    return {bad, {bad, bad}};
  }
  const bool usable = amax > kSmallest;
  const auto inverse = hn::Set(d, usable ? 127.0f / amax : 0.0f);
  VecI32 sums[2] = {hn::Zero(TagI32()), hn::Zero(TagI32())};
  for (int64_t i = 0; i < kVectors; ++i) {
    const auto codes = hn::NearestInt(hn::Mul(v[i], inverse));
    const int64_t half = i / (kVectors / 2);
    sums[half] = hn::Add(sums[half], codes);
    int8_t* to = half == 0 ? lower : upper;
    hn::StoreU(hn::DemoteTo(d8, codes), d8, to + (i % (kVectors / 2)) * kLanes);
  }
  const float scale = usable ? amax / 127.0f : 0.0f;
  return {scale, {scale * sum_codes(sums[0]), scale * sum_codes(sums[1])}};
}

// Tiles of `width` tokens for products with a panel of weights. Per tile and block: codes
// [width][32], scales [width], sums [planes][width]. Tokens beyond the last are zero.
struct TiledActivations {
  int8_t* codes;
  float* scales;
  float* sums;
  int64_t blocks;
  int64_t width;
  int planes;
};

HWY_INLINE void quantize_tile(
    const TiledActivations& to, int64_t tile, const float* x, int64_t x_stride, int64_t tokens) {
  for (int64_t i = 0; i < to.width; ++i) {
    const int64_t t = tile * to.width + i;
    for (int64_t b = 0; b < to.blocks; ++b) {
      const int64_t at = (tile * to.blocks + b) * to.width;
      int8_t* codes = to.codes + (at + i) * 32;
      BlockScale block = {0.0f, {0.0f, 0.0f}};
      if (t < tokens) {
        block = quantize_block(x + t * x_stride + b * 32, codes, codes + 16);
      } else {
        __builtin_memset(codes, 0, 32);
      }
      float* sums = to.sums + at * to.planes + i;
      to.scales[at + i] = block.scale;
      sums[0] = block.sums[0] + (to.planes == 1 ? block.sums[1] : 0.0f);
      if (to.planes == 2) {
        sums[to.width] = block.sums[1];
      }
    }
  }
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // PAVO_CPU_HAVE_SIMD

#endif  // include guard
