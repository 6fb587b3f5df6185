// Rows of dense types as f32 panels. A decoder turns stored units (16 bytes of a dense type) of
// kLanes rows into kUnitColumns vectors, one row a lane.
#if defined(PAVO_PLUGINS_CPU_OPS_DECODE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAVO_PLUGINS_CPU_OPS_DECODE_INL_H_
#undef PAVO_PLUGINS_CPU_OPS_DECODE_INL_H_
#else
#define PAVO_PLUGINS_CPU_OPS_DECODE_INL_H_
#endif

#include "plugins/cpu/ops/panel-inl.h"

#if PAVO_CPU_HAVE_SIMD
HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

struct DecodeF32 {
  static constexpr int64_t kUnitBytes = 16;
  static constexpr int64_t kUnitColumns = 4;
  static HWY_INLINE void decode(const PanelRows& rows, int64_t at, float* out) {
    VecU8 v[4];
    load_transposed(rows, at, v);
    for (int64_t i = 0; i < 4; ++i) {
      hn::Store(hn::BitCast(TagF32(), v[i]), TagF32(), out + i * kLanes);
    }
  }
};

struct DecodeF16 {
  static constexpr int64_t kUnitBytes = 16;
  static constexpr int64_t kUnitColumns = 8;
  static HWY_INLINE void decode(const PanelRows& rows, int64_t at, float* out) {
    VecU8 v[4];
    load_transposed(rows, at, v);
    for (int64_t i = 0; i < 4; ++i) {
      VecF32 even;
      VecF32 odd;
      split_halves(hn::BitCast(TagU32(), v[i]), &even, &odd);
      hn::Store(even, TagF32(), out + 2 * i * kLanes);
      hn::Store(odd, TagF32(), out + (2 * i + 1) * kLanes);
    }
  }
};

struct DecodeBF16 {
  static constexpr int64_t kUnitBytes = 16;
  static constexpr int64_t kUnitColumns = 8;
  static HWY_INLINE void decode(const PanelRows& rows, int64_t at, float* out) {
    VecU8 v[4];
    load_transposed(rows, at, v);
    for (int64_t i = 0; i < 4; ++i) {
      const auto both = hn::BitCast(TagU32(), v[i]);
      const auto odd = hn::And(both, hn::Set(TagU32(), 0xffff0000U));
      const auto even = hn::ShiftLeft<16>(both);
      hn::Store(hn::BitCast(TagF32(), even), TagF32(), out + 2 * i * kLanes);
      hn::Store(hn::BitCast(TagF32(), odd), TagF32(), out + (2 * i + 1) * kLanes);
    }
  }
};

// Columns that decode_columns may write beyond `count`.
constexpr int64_t kDecodeSlack = 8;

// Decodes `count` columns from `first` on, a whole number of units but for the end of a row of a
// dense type, into out [count][kLanes].
template <class Decoder>
void decode_columns(const PanelRows& rows, int64_t first, int64_t count, float* out) {
  constexpr int64_t kColumns = Decoder::kUnitColumns;
  int64_t at = first / kColumns * Decoder::kUnitBytes;
  for (int64_t k = 0; k + kColumns <= count; k += kColumns) {
    Decoder::decode(rows, at, out + k * kLanes);
    at += Decoder::kUnitBytes;
  }
  const int64_t rest = count % kColumns;
  if (rest > 0) {  // what follows may not be ours to read
    alignas(64) uint8_t unit[kLanes][Decoder::kUnitBytes] = {};
    PanelRows copies;
    for (int64_t r = 0; r < kLanes; ++r) {
      const auto bytes = static_cast<size_t>(rest * (Decoder::kUnitBytes / kColumns));
      __builtin_memcpy(unit[r], rows.row[r] + at, bytes);
      copies.row[r] = unit[r];
    }
    Decoder::decode(copies, 0, out + (count - rest) * kLanes);
  }
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // PAVO_CPU_HAVE_SIMD

#endif  // include guard
