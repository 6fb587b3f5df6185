// The quantised weight formats as the int8 matmul sees them: blocks of 32 byte codes u with
// value = d * u + m, where d and m hold for a block or, in formats with kPlanes 2, for each half.
//
// pack() turns a stored block of kLanes rows into panel blocks, transposed so that a 32-bit lane
// holds four neighbouring codes of one row. A panel block is 8 vectors of codes, then kPlanes
// vectors of d, then as many of m if the format has an offset.
#if defined(PAVO_PLUGINS_CPU_OPS_Q8_FORMATS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAVO_PLUGINS_CPU_OPS_Q8_FORMATS_INL_H_
#undef PAVO_PLUGINS_CPU_OPS_Q8_FORMATS_INL_H_
#else
#define PAVO_PLUGINS_CPU_OPS_Q8_FORMATS_INL_H_
#endif

#include <cstddef>

#include "pavo/quant.h"

#include "plugins/cpu/ops/int8_dot-inl.h"
#include "plugins/cpu/ops/panel-inl.h"

#if PAVO_CPU_HAVE_SIMD
HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

// What a panel block consists of; all that its products depend on.
template <Code kCodes, int kScalePlanes, bool kOffset>
struct PanelShape {
  static constexpr Code kCode = kCodes;
  static constexpr int kPlanes = kScalePlanes;
  static constexpr bool kHasMin = kOffset;
  static constexpr int64_t kBlockBytes = kVectorBytes * (8 + kPlanes * (kHasMin ? 2 : 1));
};

template <class Shape>
HWY_INLINE void store_d(VecF32 d, uint8_t* block, int64_t plane) {
  hn::Store(d, TagF32(), reinterpret_cast<float*>(block + kVectorBytes * (8 + plane)));
}
template <class Shape>
HWY_INLINE void store_m(VecF32 m, uint8_t* block, int64_t plane) {
  auto* to = reinterpret_cast<float*>(block + kVectorBytes * (8 + Shape::kPlanes + plane));
  hn::Store(m, TagF32(), to);
}

HWY_INLINE VecU8 low_nibbles(VecU8 v) {
  return hn::And(v, hn::Set(TagU8(), 15));
}
template <int kBits>
HWY_INLINE VecU8 shift_bytes(VecU8 v) {  // right; bits move in from the byte above
  return hn::BitCast(TagU8(), hn::ShiftRight<kBits>(hn::BitCast(TagU32(), v)));
}
HWY_INLINE VecU8 high_nibbles(VecU8 v) {
  return low_nibbles(shift_bytes<4>(v));
}

// 16 bytes of nibbles at `at` as one panel block: low halves first.
HWY_INLINE void pack_nibbles(const PanelRows& rows, int64_t at, uint8_t* out) {
  VecU8 v[4];
  load_transposed(rows, at, v);
  for (int64_t i = 0; i < 4; ++i) {
    hn::Store(low_nibbles(v[i]), TagU8(), out + i * kVectorBytes);
    hn::Store(high_nibbles(v[i]), TagU8(), out + (i + 4) * kVectorBytes);
  }
}

struct FormatQ4_0 {
  static constexpr int64_t kBlockBytes = PAVO_BLOCK_BYTES_Q4_0;
  static constexpr int64_t kSubBlocks = 1;  // panel blocks of a stored one
  using Shape = PanelShape<Code::kUnsigned4, 1, true>;

  static HWY_INLINE void pack(const PanelRows& rows, int64_t at, uint8_t* out) {
    const auto d = load_halves(rows, at);
    pack_nibbles(rows, at + 2, out);
    store_d<Shape>(d, out, 0);
    store_m<Shape>(hn::Mul(d, hn::Set(TagF32(), -8.0f)), out, 0);
  }
};

struct FormatQ4_1 {
  static constexpr int64_t kBlockBytes = PAVO_BLOCK_BYTES_Q4_1;
  static constexpr int64_t kSubBlocks = 1;
  using Shape = PanelShape<Code::kUnsigned4, 1, true>;

  static HWY_INLINE void pack(const PanelRows& rows, int64_t at, uint8_t* out) {
    VecF32 d;
    VecF32 m;
    load_half_pairs(rows, at, &d, &m);
    pack_nibbles(rows, at + 4, out);
    store_d<Shape>(d, out, 0);
    store_m<Shape>(m, out, 0);
  }
};

template <bool kUnsigned>
struct FormatQ8_0 {  // plus 128 where unsigned codes are wanted
  static constexpr int64_t kBlockBytes = PAVO_BLOCK_BYTES_Q8_0;
  static constexpr int64_t kSubBlocks = 1;
  using Shape = PanelShape<kUnsigned ? Code::kUnsigned8 : Code::kSigned8, 1, /*kOffset=*/kUnsigned>;

  static HWY_INLINE void pack(const PanelRows& rows, int64_t at, uint8_t* out) {
    const auto d = load_halves(rows, at);
    const auto sign = hn::Set(TagU8(), kUnsigned ? 0x80 : 0);
    for (int64_t half = 0; half < 2; ++half) {
      VecU8 v[4];
      load_transposed(rows, at + 2 + 16 * half, v);
      for (int64_t i = 0; i < 4; ++i) {
        hn::Store(hn::Xor(v[i], sign), TagU8(), out + (i + 4 * half) * kVectorBytes);
      }
    }
    store_d<Shape>(d, out, 0);
    if constexpr (Shape::kHasMin) {
      store_m<Shape>(hn::Mul(d, hn::Set(TagF32(), -128.0f)), out, 0);
    }
  }
};

struct FormatQ4_K {
  static constexpr int64_t kBlockBytes = PAVO_BLOCK_BYTES_Q4_K;
  static constexpr int64_t kSubBlocks = 8;
  using Shape = PanelShape<Code::kUnsigned4, 1, true>;

  // d and m of sub-blocks first .. first + 3, whose six-bit factors are the bytes of the lanes.
  static HWY_INLINE void store_scales(
      VecF32 d, VecF32 minus_m, VecU8 scales, VecU8 minima, uint8_t* out) {
    const auto six = hn::Set(TagU32(), 63);
    auto s = hn::BitCast(TagU32(), scales);
    auto m = hn::BitCast(TagU32(), minima);
    for (int64_t i = 0; i < 4; ++i, out += Shape::kBlockBytes) {
      const auto scale = hn::ConvertTo(TagF32(), hn::BitCast(TagI32(), hn::And(s, six)));
      const auto minimum = hn::ConvertTo(TagF32(), hn::BitCast(TagI32(), hn::And(m, six)));
      store_d<Shape>(hn::Mul(d, scale), out, 0);
      store_m<Shape>(hn::Mul(minus_m, minimum), out, 0);
      s = hn::ShiftRight<8>(s);
      m = hn::ShiftRight<8>(m);
    }
  }

  static HWY_INLINE void pack(const PanelRows& rows, int64_t at, uint8_t* out) {
    constexpr int64_t kOut = Shape::kBlockBytes;
    VecF32 d;
    VecF32 m;
    load_half_pairs(rows, at, &d, &m);
    const auto minus_m = hn::Neg(m);
    VecU8 h[4];  // d and dmin; bytes 0-3, 4-7 and 8-11 of the scales (pavo_q4_k_scale_min)
    load_transposed(rows, at, h);
    const auto top = hn::Set(TagU8(), 0x30);
    store_scales(d, minus_m, h[1], h[2], out);
    store_scales(
        d,
        minus_m,
        hn::Or(low_nibbles(h[3]), hn::And(shift_bytes<2>(h[1]), top)),
        hn::Or(high_nibbles(h[3]), hn::And(shift_bytes<2>(h[2]), top)),
        out + 4 * kOut);
    for (int64_t part = 0; part < 8; ++part) {  // 16 bytes: halves of sub-blocks 2p and 2p + 1
      VecU8 v[4];
      load_transposed(rows, at + offsetof(pavo_block_q4_k, qs) + 16 * part, v);
      uint8_t* even = out + part / 2 * 2 * kOut + part % 2 * 4 * kVectorBytes;
      for (int64_t i = 0; i < 4; ++i) {
        hn::Store(low_nibbles(v[i]), TagU8(), even + i * kVectorBytes);
        hn::Store(high_nibbles(v[i]), TagU8(), even + kOut + i * kVectorBytes);
      }
    }
  }
};

struct FormatQ6_K {
  static constexpr int64_t kBlockBytes = PAVO_BLOCK_BYTES_Q6_K;
  static constexpr int64_t kSubBlocks = 8;
  using Shape = PanelShape<Code::kUnsigned6, 2, true>;

  static HWY_INLINE void pack_scales(const PanelRows& rows, int64_t at, uint8_t* out) {
    const auto d = load_halves(rows, at + offsetof(pavo_block_q6_k, d));
    VecU8 v[4];
    load_transposed(rows, at + offsetof(pavo_block_q6_k, scales), v);
    for (int64_t i = 0; i < 4; ++i) {
      const auto bytes = hn::BitCast(TagI32(), v[i]);
      const VecI32 scales[4] = {
          hn::ShiftRight<24>(hn::ShiftLeft<24>(bytes)),
          hn::ShiftRight<24>(hn::ShiftLeft<16>(bytes)),
          hn::ShiftRight<24>(hn::ShiftLeft<8>(bytes)),
          hn::ShiftRight<24>(bytes)};
      for (int64_t j = 0; j < 4; ++j) {
        uint8_t* block = out + (2 * i + j / 2) * Shape::kBlockBytes;
        const auto scale = hn::Mul(d, hn::ConvertTo(TagF32(), scales[j]));
        store_d<Shape>(scale, block, j % 2);
        store_m<Shape>(hn::Mul(scale, hn::Set(TagF32(), -32.0f)), block, j % 2);
      }
    }
  }

  // Four low bits and, at bits 4 and 5, the lowest two bits of `high`.
  static HWY_INLINE VecU8 join(VecU8 low, VecU8 high) {
    const auto two = hn::And(high, hn::Set(TagU8(), 3));
    const auto moved = hn::BitCast(TagU8(), hn::ShiftLeft<4>(hn::BitCast(TagU32(), two)));
    return hn::Or(low, moved);
  }

  static HWY_INLINE void pack(const PanelRows& rows, int64_t at, uint8_t* out) {
    constexpr int64_t kOut = Shape::kBlockBytes;
    pack_scales(rows, at, out);
    for (int64_t part = 0; part < 4; ++part) {  // half of the block, half of its sub-blocks
      const int64_t half = part / 2;
      const int64_t plane = part % 2;
      VecU8 low[4];
      VecU8 low32[4];
      VecU8 high[4];
      load_transposed(rows, at + 64 * half + 16 * plane, low);
      load_transposed(rows, at + 64 * half + 32 + 16 * plane, low32);
      load_transposed(rows, at + offsetof(pavo_block_q6_k, qh) + 32 * half + 16 * plane, high);
      uint8_t* to = out + 4 * half * kOut + plane * 4 * kVectorBytes;
      for (int64_t i = 0; i < 4; ++i, to += kVectorBytes) {
        hn::Store(join(low_nibbles(low[i]), high[i]), TagU8(), to);
        hn::Store(join(low_nibbles(low32[i]), shift_bytes<2>(high[i])), TagU8(), to + kOut);
        hn::Store(join(high_nibbles(low[i]), shift_bytes<4>(high[i])), TagU8(), to + 2 * kOut);
        hn::Store(join(high_nibbles(low32[i]), shift_bytes<6>(high[i])), TagU8(), to + 3 * kOut);
      }
    }
  }
};

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // PAVO_CPU_HAVE_SIMD

#endif  // include guard
