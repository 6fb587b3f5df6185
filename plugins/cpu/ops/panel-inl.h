// Panels: kLanes rows of a weight matrix that are worked on together, one row a lane, and the tiles
// of tokens that meet them. Loads transpose, so that a 32-bit lane holds neighbouring bytes of one
// row.
#if defined(PAVO_PLUGINS_CPU_OPS_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAVO_PLUGINS_CPU_OPS_PANEL_INL_H_
#undef PAVO_PLUGINS_CPU_OPS_PANEL_INL_H_
#else
#define PAVO_PLUGINS_CPU_OPS_PANEL_INL_H_
#endif

#include <cstddef>

#include "plugins/cpu/ops/simd-inl.h"

#if PAVO_CPU_HAVE_SIMD
HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

constexpr int64_t kVectorBytes = 4 * kLanes;

// Where kLanes rows of weights begin.
struct PanelRows {
  const uint8_t* row[kLanes];
};

// Those from `first` on; beyond the last of `rows` it is repeated.
HWY_INLINE PanelRows
panel_rows(const std::byte* w, int64_t row_bytes, int64_t first, int64_t rows) {
  PanelRows panel;
  for (int64_t r = 0; r < kLanes; ++r) {
    panel.row[r] = reinterpret_cast<const uint8_t*>(w) + HWY_MIN(first + r, rows - 1) * row_bytes;
  }
  return panel;
}

// Tokens of a tile: 1, 2, 4, 6 or 8 and, with several tiles, more than half of `most` (4 or 8), so
// that the tiles are about even.
HWY_INLINE int64_t tile_width(int64_t tokens, int64_t most) {
  const int64_t tiles = (tokens + most - 1) / most;
  const int64_t even = (tokens + tiles - 1) / tiles;
  return even == 1 ? 1 : (even + 1) / 2 * 2;
}

// 16 bytes at `at` of every row, transposed: vector i holds bytes 4i..4i+3 of each row in its lane.
HWY_INLINE void load_transposed(const PanelRows& rows, int64_t at, VecU8 (&out)[4]) {
  for (int64_t i = 0; i < 4; ++i) {
    out[i] = gather_blocks(
        TagU8(), [&](int64_t block) HWY_ATTR { return rows.row[4 * block + i] + at; });
  }
  transpose_4x4(out);
}

// The f16 at `at` of every row as f32.
HWY_INLINE VecF32 load_halves(const PanelRows& rows, int64_t at) {
  alignas(64) uint16_t halves[kLanes];
#pragma GCC unroll 16
  for (int64_t r = 0; r < kLanes; ++r) {
    __builtin_memcpy(halves + r, rows.row[r] + at, sizeof(uint16_t));
  }
  return load_f16(halves);
}

// The f16 in the low and the high half of each lane as f32.
HWY_INLINE void split_halves(VecU32 pairs, VecF32* low, VecF32* high) {
  const hn::Rebind<uint16_t, TagF32> d16;
  const hn::Rebind<hwy::float16_t, TagF32> dh;
  const auto low16 = hn::BitCast(TagI32(), hn::And(pairs, hn::Set(TagU32(), 0xffff)));
  const auto high16 = hn::BitCast(TagI32(), hn::ShiftRight<16>(pairs));
  *low = hn::PromoteTo(TagF32(), hn::BitCast(dh, hn::DemoteTo(d16, low16)));
  *high = hn::PromoteTo(TagF32(), hn::BitCast(dh, hn::DemoteTo(d16, high16)));
}

// The pair of f16 at `at` of every row.
HWY_INLINE void load_half_pairs(const PanelRows& rows, int64_t at, VecF32* first, VecF32* second) {
  alignas(64) int32_t pairs[kLanes];
#pragma GCC unroll 16
  for (int64_t r = 0; r < kLanes; ++r) {
    __builtin_memcpy(pairs + r, rows.row[r] + at, sizeof(int32_t));
  }
  split_halves(hn::BitCast(TagU32(), hn::Load(TagI32(), pairs)), first, second);
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // PAVO_CPU_HAVE_SIMD

#endif  // include guard
