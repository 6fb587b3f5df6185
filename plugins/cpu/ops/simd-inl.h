// Vector helpers of the CPU kernels, compiled once per instruction set. Include it inside a file
// that foreach_target.h re-includes, outside of any namespace.
//
// A "block" is 16 bytes, the unit within which Highway's shuffles work on every target.
#if defined(PAVO_PLUGINS_CPU_OPS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAVO_PLUGINS_CPU_OPS_SIMD_INL_H_
#undef PAVO_PLUGINS_CPU_OPS_SIMD_INL_H_
#else
#define PAVO_PLUGINS_CPU_OPS_SIMD_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

// The kernels want shuffles and dot products: x86 with SSE4 or better. Elsewhere, and in Highway's
// one-lane target, they are absent and the reference kernels run.
#undef PAVO_CPU_HAVE_SIMD
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
#define PAVO_CPU_HAVE_SIMD 1
#else
#define PAVO_CPU_HAVE_SIMD 0
#endif

#if PAVO_CPU_HAVE_SIMD
HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using TagU8 = hn::ScalableTag<uint8_t>;
using TagI8 = hn::ScalableTag<int8_t>;
using TagI16 = hn::ScalableTag<int16_t>;
using TagU32 = hn::ScalableTag<uint32_t>;
using TagI32 = hn::ScalableTag<int32_t>;
using TagU64 = hn::ScalableTag<uint64_t>;
using TagF32 = hn::ScalableTag<float>;
using VecU8 = hn::Vec<TagU8>;
using VecI8 = hn::Vec<TagI8>;
using VecI16 = hn::Vec<TagI16>;
using VecU32 = hn::Vec<TagU32>;
using VecI32 = hn::Vec<TagI32>;
using VecF32 = hn::Vec<TagF32>;

// f32 lanes of a vector, and its 16-byte blocks.
constexpr int64_t kLanes = hn::MaxLanes(TagF32());
constexpr int64_t kVectorBlocks = kLanes / 4;
// Bytes of a vector on the best target: what workspaces are sized for.
constexpr int64_t kWidestVector = 64;
// Vector registers: decides how many accumulators a kernel may keep.
constexpr int kRegisters = HWY_TARGET <= HWY_AVX3 ? 32 : 16;

// One vector from kVectorBlocks blocks of 16 bytes; block i is read at address(i).
template <class D, class Address>
HWY_INLINE hn::Vec<D> gather_blocks(D d, const Address& address, int64_t first = 0) {
  if constexpr (hn::MaxLanes(D()) == 16) {
    return hn::LoadU(d, address(first));
  } else {
    const hn::Half<D> half;
    const auto low = gather_blocks(half, address, first);
    const auto high = gather_blocks(
        half, address, first + static_cast<int64_t>(hn::MaxLanes(hn::Half<D>()) / 16));
    return hn::Combine(d, high, low);
  }
}

// Transposes the 4x4 matrix of 32-bit lanes that the four vectors hold in each block.
HWY_INLINE void transpose_4x4(VecU8 (&v)[4]) {
  const TagU32 d32;
  const TagU64 d64;
  const TagU8 d8;
  const auto v0 = hn::BitCast(d32, v[0]);
  const auto v1 = hn::BitCast(d32, v[1]);
  const auto v2 = hn::BitCast(d32, v[2]);
  const auto v3 = hn::BitCast(d32, v[3]);
  const auto low01 = hn::BitCast(d64, hn::InterleaveLower(d32, v0, v1));
  const auto high01 = hn::BitCast(d64, hn::InterleaveUpper(d32, v0, v1));
  const auto low23 = hn::BitCast(d64, hn::InterleaveLower(d32, v2, v3));
  const auto high23 = hn::BitCast(d64, hn::InterleaveUpper(d32, v2, v3));
  v[0] = hn::BitCast(d8, hn::InterleaveLower(d64, low01, low23));
  v[1] = hn::BitCast(d8, hn::InterleaveUpper(d64, low01, low23));
  v[2] = hn::BitCast(d8, hn::InterleaveLower(d64, high01, high23));
  v[3] = hn::BitCast(d8, hn::InterleaveUpper(d64, high01, high23));
}

// Sum of the blocks of a vector: 4 lanes.
template <class D>
HWY_INLINE hn::Vec<hn::Full128<float>> add_blocks(D d, hn::Vec<D> v) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return add_blocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// {sum of a, sum of b, sum of c, sum of e}, each over all lanes in a fixed order.
HWY_INLINE hn::Vec<hn::Full128<float>> sum_lanes_4(VecF32 a, VecF32 b, VecF32 c, VecF32 e) {
  const TagF32 d;
  const TagU64 d64;
  const auto ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const auto ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto ab64 = hn::BitCast(d64, ab);
  const auto ce64 = hn::BitCast(d64, ce);
  const auto low = hn::BitCast(d, hn::InterleaveLower(d64, ab64, ce64));
  const auto high = hn::BitCast(d, hn::InterleaveUpper(d64, ab64, ce64));
  return add_blocks(d, hn::Add(low, high));
}

// kLanes f16 bit patterns as f32.
HWY_INLINE VecF32 load_f16(const uint16_t* halves) {
  const hn::Rebind<hwy::float16_t, TagF32> d16;
  const hn::Rebind<uint16_t, TagF32> du16;
  return hn::PromoteTo(TagF32(), hn::BitCast(d16, hn::LoadU(du16, halves)));
}

// kLanes bf16 bit patterns as f32.
HWY_INLINE VecF32 load_bf16(const uint16_t* halves) {
  const hn::Rebind<uint16_t, TagF32> du16;
  const auto wide = hn::PromoteTo(TagU32(), hn::LoadU(du16, halves));
  return hn::BitCast(TagF32(), hn::ShiftLeft<16>(wide));
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // PAVO_CPU_HAVE_SIMD

#endif  // include guard
