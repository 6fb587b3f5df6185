// Dot products of 8-bit weight codes with int8 activations in 32-bit lanes: four products a lane.
// Two policies of one form: Vnni (one instruction) and Madd (every x86 with SSSE3).
//
// Highway 1.0.3 has no such operation and its targets do not enable VNNI, so the instruction is
// written as assembly: whoever instantiates Vnni must have asked has_vnni (simd_targets.h).
#if defined(PAVO_PLUGINS_CPU_OPS_INT8_DOT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAVO_PLUGINS_CPU_OPS_INT8_DOT_INL_H_
#undef PAVO_PLUGINS_CPU_OPS_INT8_DOT_INL_H_
#else
#define PAVO_PLUGINS_CPU_OPS_INT8_DOT_INL_H_
#endif

#include "plugins/cpu/ops/simd-inl.h"

#if PAVO_CPU_HAVE_SIMD
HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

// What a weight code is. Vnni never sees kSigned, Madd never kUnsigned8: a pair of products of the
// largest code and activation must fit the i16 lanes of maddubs.
enum class Code {
  kUnsigned4,  // 0..15: eight sums of two products fit i16
  kUnsigned6,  // 0..63: two
  kUnsigned8,  // 0..255
  kSigned8,    // -128..127
};

// The same four bytes in every lane.
HWY_INLINE VecI8 broadcast_4(const int8_t* bytes) {
  int32_t four;
  __builtin_memcpy(&four, bytes, sizeof four);
  return hn::BitCast(TagI8(), hn::Set(TagI32(), four));
}

#if HWY_TARGET <= HWY_AVX3
HWY_INLINE VecI16 maddubs(VecU8 w, VecI8 x) {
  return VecI16{_mm512_maddubs_epi16(w.raw, x.raw)};
}
HWY_INLINE VecI32 madd_ones(VecI16 v) {
  return VecI32{_mm512_madd_epi16(v.raw, _mm512_set1_epi16(1))};
}
HWY_INLINE VecU8 abs_bytes(VecI8 v) {
  return VecU8{_mm512_abs_epi8(v.raw)};
}
// x with the sign of w, 0 where w is 0 (or x, which meets a weight of 0).
HWY_INLINE VecI8 with_sign(VecI8 x, VecI8 w) {
  return VecI8{
      _mm512_mask_sub_epi8(x.raw, _mm512_movepi8_mask(w.raw), _mm512_setzero_si512(), x.raw)};
}
#elif HWY_TARGET == HWY_AVX2
HWY_INLINE VecI16 maddubs(VecU8 w, VecI8 x) {
  return VecI16{_mm256_maddubs_epi16(w.raw, x.raw)};
}
HWY_INLINE VecI32 madd_ones(VecI16 v) {
  return VecI32{_mm256_madd_epi16(v.raw, _mm256_set1_epi16(1))};
}
HWY_INLINE VecU8 abs_bytes(VecI8 v) {
  return VecU8{_mm256_abs_epi8(v.raw)};
}
HWY_INLINE VecI8 with_sign(VecI8 x, VecI8 w) {
  return VecI8{_mm256_sign_epi8(x.raw, w.raw)};
}
#else
HWY_INLINE VecI16 maddubs(VecU8 w, VecI8 x) {
  return VecI16{_mm_maddubs_epi16(w.raw, x.raw)};
}
HWY_INLINE VecI32 madd_ones(VecI16 v) {
  return VecI32{_mm_madd_epi16(v.raw, _mm_set1_epi16(1))};
}
HWY_INLINE VecU8 abs_bytes(VecI8 v) {
  return VecU8{_mm_abs_epi8(v.raw)};
}
HWY_INLINE VecI8 with_sign(VecI8 x, VecI8 w) {
  return VecI8{_mm_sign_epi8(x.raw, w.raw)};
}
#endif

struct Madd {
  static constexpr bool kVnni = false;
};

#if HWY_TARGET <= HWY_AVX2
struct Vnni {
  static constexpr bool kVnni = true;

  // acc + w . x
  static HWY_INLINE VecI32 dot(VecI32 acc, VecU8 w, VecI8 x) {
#if HWY_TARGET <= HWY_AVX3
    __asm__("vpdpbusd %2, %1, %0" : "+v"(acc.raw) : "v"(w.raw), "v"(x.raw));
#else
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(acc.raw) : "x"(w.raw), "x"(x.raw));
#endif
    return acc;
  }

  // acc + w . (the same four activations in every lane)
  static HWY_INLINE VecI32 dot_broadcast(VecI32 acc, VecU8 w, const int8_t* x) {
#if HWY_TARGET <= HWY_AVX3
    using Aliasing = int32_t __attribute__((may_alias, aligned(1)));
    __asm__("vpdpbusd %2%{1to16%}, %1, %0"
            : "+v"(acc.raw)
            : "v"(w.raw), "m"(*reinterpret_cast<const Aliasing*>(x)));
    return acc;
#else
    return dot(acc, w, broadcast_4(x));
#endif
  }
};
#endif

// sums[t] = sum over i < kVectors of w[i] . (activations x[32 t + 4 i ..] in every lane): kColumns
// columns against the same weights, one row a lane.
template <class Dot, Code kCode, int kVectors, int kColumns>
HWY_INLINE void dot_columns(const uint8_t* w, const int8_t* x, VecI32 (&sums)[kColumns]) {
  static_assert(kCode != (Dot::kVnni ? Code::kSigned8 : Code::kUnsigned8));
  const TagU8 d8;
  constexpr int64_t kBytes = 4 * kLanes;
  for (int t = 0; t < kColumns; ++t) {
    sums[t] = hn::Zero(TagI32());
  }
  if constexpr (Dot::kVnni) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      const auto wi = hn::Load(d8, w + i * kBytes);
#pragma GCC unroll 8
      for (int t = 0; t < kColumns; ++t) {
        sums[t] = Dot::dot_broadcast(sums[t], wi, x + 32 * t + 4 * i);
      }
    }
  } else if constexpr (kCode == Code::kSigned8) {
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; ++i) {
      const auto wi = hn::BitCast(TagI8(), hn::Load(d8, w + i * kBytes));
      const auto magnitude = abs_bytes(wi);
#pragma GCC unroll 8
      for (int t = 0; t < kColumns; ++t) {
        const auto signed_x = with_sign(broadcast_4(x + 32 * t + 4 * i), wi);
        sums[t] = hn::Add(sums[t], madd_ones(maddubs(magnitude, signed_x)));
      }
    }
  } else {
    constexpr int kSpan = kCode == Code::kUnsigned4 ? kVectors : 2;  // sums that fit i16
#pragma GCC unroll 4
    for (int first = 0; first < kVectors; first += kSpan) {
      VecI16 narrow[kColumns];
#pragma GCC unroll 8
      for (int i = first; i < first + kSpan; ++i) {
        const auto wi = hn::Load(d8, w + i * kBytes);
#pragma GCC unroll 8
        for (int t = 0; t < kColumns; ++t) {
          const auto product = maddubs(wi, broadcast_4(x + 32 * t + 4 * i));
          narrow[t] = i == first ? product : hn::Add(narrow[t], product);
        }
      }
      for (int t = 0; t < kColumns; ++t) {
        sums[t] = hn::Add(sums[t], madd_ones(narrow[t]));
      }
    }
  }
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // PAVO_CPU_HAVE_SIMD

#endif  // include guard
