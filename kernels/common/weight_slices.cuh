// The decoding of packed weights (weight_layout.h), one struct per type: all that embed and every
// matmul kernel know of a type. To add a type, add its struct and its line in the lists below.
//
// A slice is what one thread loads at once, in vectors of 16 bytes. It holds kRuns runs, each of
// kRunValues consecutive values, run r from value run_start(slice, r) of the row on, in quads of
// four values. The slices 0..slice_count(columns) - 1 of a row cover it; only the last one of a row
// of a dense type may reach beyond it, into the padding, which is zero.
//
//   quantised   value = scale(run) * byte + offset(run); word(run, quad): the quad's four bytes as
//               dot4 takes them, never negative unless kSigned; runs in the same kScaleValues
//               values share scale and offset; kHasOffset: offsets may be other than zero;
//               kSpan: a slice's values; its runs follow each other in the row
//   dense       quad(run, quad): the values
//
// slice_values gives a quad of any type as f32. It rounds once per value (in q4_1 and q4_k too,
// where scale * byte is exact), so it gives the values of quant.h's formulas in f32, bit by bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/common/numeric.cuh"
#include "kernels/common/weight_layout.h"

namespace pavo::cuda {

// Word i of four; i must be known when loops are unrolled, or the vector goes to local memory.
__device__ __forceinline__ uint32_t word_of(const uint4& words, int i) {
  return i == 0 ? words.x : i == 1 ? words.y : i == 2 ? words.z : words.w;
}

template <typename Arch, typename T>
__device__ __forceinline__ T load_part(const std::byte* part, int64_t index) {
  return Arch::load_streaming(reinterpret_cast<const T*>(part) + index);
}

template <int32_t kType>
struct WeightSlice;

template <>
struct WeightSlice<PAVO_TYPE_F32> {
  static constexpr bool kQuantised = false;
  static constexpr int kRuns = 1, kRunValues = 4;
  uint4 words;

  template <typename Index>
  static PAVO_HOST_DEVICE Index run_start(Index slice, int) {
    return 4 * slice;
  }
  template <typename Arch, typename Index>
  __device__ __forceinline__ void load(const std::byte* row, const WeightLayout&, Index slice) {
    words = load_part<Arch, uint4>(row, slice);
  }
  __device__ __forceinline__ float4 quad(int, int) const {
    return make_float4(
        __uint_as_float(words.x),
        __uint_as_float(words.y),
        __uint_as_float(words.z),
        __uint_as_float(words.w));
  }
};

template <>
struct WeightSlice<PAVO_TYPE_F16> {
  static constexpr bool kQuantised = false;
  static constexpr int kRuns = 1, kRunValues = 8;
  uint4 words;

  template <typename Index>
  static PAVO_HOST_DEVICE Index run_start(Index slice, int) {
    return 8 * slice;
  }
  template <typename Arch, typename Index>
  __device__ __forceinline__ void load(const std::byte* row, const WeightLayout&, Index slice) {
    words = load_part<Arch, uint4>(row, slice);
  }
  __device__ __forceinline__ float4 quad(int, int index) const {
    const float2 a = f16x2_to_f32(word_of(words, 2 * index));
    const float2 b = f16x2_to_f32(word_of(words, 2 * index + 1));
    return make_float4(a.x, a.y, b.x, b.y);
  }
};

template <>
struct WeightSlice<PAVO_TYPE_BF16> {
  static constexpr bool kQuantised = false;
  static constexpr int kRuns = 1, kRunValues = 8;
  uint4 words;

  template <typename Index>
  static PAVO_HOST_DEVICE Index run_start(Index slice, int) {
    return 8 * slice;
  }
  template <typename Arch, typename Index>
  __device__ __forceinline__ void load(const std::byte* row, const WeightLayout&, Index slice) {
    words = load_part<Arch, uint4>(row, slice);
  }
  __device__ __forceinline__ float4 quad(int, int index) const {
    const uint32_t a = word_of(words, 2 * index);
    const uint32_t b = word_of(words, 2 * index + 1);
    return make_float4(
        __uint_as_float(a << 16),
        __uint_as_float(a & 0xffff0000u),
        __uint_as_float(b << 16),
        __uint_as_float(b & 0xffff0000u));
  }
};

// A block: low halves are values 0..15, high halves 16..31.
template <>
struct WeightSlice<PAVO_TYPE_Q4_0> {
  static constexpr bool kQuantised = true, kSigned = true, kHasOffset = false;
  static constexpr int kRuns = 2, kRunValues = 16, kScaleValues = 32, kSpan = 32;
  uint4 low;
  float d;  // of value / 16

  template <typename Index>
  static PAVO_HOST_DEVICE Index run_start(Index slice, int run) {
    return 32 * slice + 16 * run;
  }
  template <typename Arch, typename Index>
  __device__ __forceinline__ void load(
      const std::byte* row, const WeightLayout& layout, Index slice) {
    low = load_part<Arch, uint4>(row, slice);
    d = f16_to_f32(load_part<Arch, uint16_t>(row + layout.scale_offset, slice)) * 0.0625f;
  }
  __device__ __forceinline__ uint32_t word(int run, int index) const {
    // 16 * (nibble - 8) as a signed byte.
    const uint32_t both = word_of(low, index);
    return ((run == 1 ? both : both << 4) & 0xf0f0f0f0u) ^ 0x80808080u;
  }
  __device__ __forceinline__ float scale(int) const { return d; }
  __device__ __forceinline__ float offset(int) const { return 0.0f; }
};

template <>
struct WeightSlice<PAVO_TYPE_Q4_1> {
  static constexpr bool kQuantised = true, kSigned = false, kHasOffset = true;
  static constexpr int kRuns = 2, kRunValues = 16, kScaleValues = 32, kSpan = 32;
  uint4 low;
  float2 dm;

  template <typename Index>
  static PAVO_HOST_DEVICE Index run_start(Index slice, int run) {
    return 32 * slice + 16 * run;
  }
  template <typename Arch, typename Index>
  __device__ __forceinline__ void load(
      const std::byte* row, const WeightLayout& layout, Index slice) {
    low = load_part<Arch, uint4>(row, slice);
    dm = f16x2_to_f32(load_part<Arch, uint32_t>(row + layout.scale_offset, slice));
  }
  __device__ __forceinline__ uint32_t word(int run, int index) const {
    return nibbles(word_of(low, index), run == 1);
  }
  __device__ __forceinline__ float scale(int) const { return dm.x; }
  __device__ __forceinline__ float offset(int) const { return dm.y; }
};

// Half a block.
template <>
struct WeightSlice<PAVO_TYPE_Q8_0> {
  static constexpr bool kQuantised = true, kSigned = true, kHasOffset = false;
  static constexpr int kRuns = 1, kRunValues = 16, kScaleValues = 32, kSpan = 16;
  uint4 low;
  float d;

  template <typename Index>
  static PAVO_HOST_DEVICE Index run_start(Index slice, int) {
    return 16 * slice;
  }
  template <typename Arch, typename Index>
  __device__ __forceinline__ void load(
      const std::byte* row, const WeightLayout& layout, Index slice) {
    low = load_part<Arch, uint4>(row, slice);
    d = f16_to_f32(load_part<Arch, uint16_t>(row + layout.scale_offset, slice / 2));
  }
  __device__ __forceinline__ uint32_t word(int, int index) const { return word_of(low, index); }
  __device__ __forceinline__ float scale(int) const { return d; }
  __device__ __forceinline__ float offset(int) const { return 0.0f; }
};

template <>
struct WeightSlice<PAVO_TYPE_Q4_K> {
  static constexpr bool kQuantised = true, kSigned = false, kHasOffset = true;
  static constexpr int kRuns = 2, kRunValues = 16, kScaleValues = 32, kSpan = 32;
  uint4 low;
  float multiplier, minimum;

  template <typename Index>
  static PAVO_HOST_DEVICE Index run_start(Index slice, int run) {
    return 32 * slice + 16 * run;
  }
  template <typename Arch, typename Index>
  __device__ __forceinline__ void load(
      const std::byte* row, const WeightLayout& layout, Index slice) {
    low = load_part<Arch, uint4>(row, slice);
    const uint32_t pair = load_part<Arch, uint16_t>(row + layout.scale_offset, slice);
    const float2 d = f16x2_to_f32(load_part<Arch, uint32_t>(row + layout.extra_offset, slice / 8));
    multiplier = d.x * static_cast<float>(unsigned_byte(pair, 0));
    minimum = d.y * static_cast<float>(unsigned_byte(pair, 1));
  }
  __device__ __forceinline__ uint32_t word(int run, int index) const {
    return nibbles(word_of(low, index), run == 1);
  }
  __device__ __forceinline__ float scale(int) const { return multiplier; }
  __device__ __forceinline__ float offset(int) const { return -minimum; }
};

template <>
struct WeightSlice<PAVO_TYPE_Q6_K> {
  static constexpr bool kQuantised = true, kSigned = true, kHasOffset = false;
  static constexpr int kRuns = 2, kRunValues = 16, kScaleValues = 16, kSpan = 32;
  uint4 low;
  uint2 high;
  uint32_t scales;  // a byte a run
  float d;          // of value / 4

  template <typename Index>
  static PAVO_HOST_DEVICE Index run_start(Index slice, int run) {
    return 32 * slice + 16 * run;
  }
  template <typename Arch, typename Index>
  __device__ __forceinline__ void load(
      const std::byte* row, const WeightLayout& layout, Index slice) {
    low = load_part<Arch, uint4>(row, slice);
    high = load_part<Arch, uint2>(row + layout.high_offset, slice);
    scales = load_part<Arch, uint16_t>(row + layout.scale_offset, slice);
    d = f16_to_f32(load_part<Arch, uint16_t>(row + layout.extra_offset, slice / 8)) * 0.25f;
  }
  __device__ __forceinline__ uint32_t word(int run, int index) const {
    // 4 * (six bits - 32) as a signed byte.
    const uint32_t both = word_of(low, index);
    const uint32_t bottom = (run == 0 ? both << 2 : both >> 2) & 0x3c3c3c3cu;
    const uint32_t tops = index < 2 ? high.x : high.y;
    const uint32_t top = (tops << (6 - 4 * run - 2 * (index % 2))) & 0xc0c0c0c0u;
    return (bottom | top) ^ 0x80808080u;
  }
  __device__ __forceinline__ float scale(int run) const {
    return d * static_cast<float>(signed_byte(scales, run));
  }
  __device__ __forceinline__ float offset(int) const { return 0.0f; }
};

template <int32_t... kTypes>
struct TypeList {};
using QuantisedTypes =
    TypeList<PAVO_TYPE_Q4_0, PAVO_TYPE_Q4_1, PAVO_TYPE_Q8_0, PAVO_TYPE_Q4_K, PAVO_TYPE_Q6_K>;
using WeightTypes = TypeList<
    PAVO_TYPE_F32,
    PAVO_TYPE_F16,
    PAVO_TYPE_BF16,
    PAVO_TYPE_Q4_0,
    PAVO_TYPE_Q4_1,
    PAVO_TYPE_Q8_0,
    PAVO_TYPE_Q4_K,
    PAVO_TYPE_Q6_K>;

template <int32_t... kTypes>
constexpr bool contains(TypeList<kTypes...>, int32_t type) {
  return ((type == kTypes) || ...);
}

// f(std::integral_constant) for the type of the list that `type` is; nothing for another one.
template <int32_t... kTypes, typename F>
void for_type(TypeList<kTypes...>, int32_t type, F f) {
  ((type == kTypes ? f(std::integral_constant<int32_t, kTypes>{}) : void()), ...);
}

template <typename Slice>
PAVO_HOST_DEVICE constexpr int64_t slice_count(int64_t columns) {
  constexpr int kValues = Slice::kRuns * Slice::kRunValues;
  return (columns + kValues - 1) / kValues;
}

// Byte i of a word as f32: it becomes the low bits of 2^23, which takes no slow conversion.
__device__ __forceinline__ float byte_to_f32(uint32_t word, int i) {
  return __uint_as_float(__byte_perm(word, 0x4b000000u, 0x7650u + static_cast<uint32_t>(i))) -
         8388608.0f;
}

template <typename Slice>
__device__ __forceinline__ float4 slice_values(const Slice& slice, int run, int index) {
  if constexpr (!Slice::kQuantised) {
    return slice.quad(run, index);
  } else {
    uint32_t word = slice.word(run, index);
    const float scale = slice.scale(run);
    float offset = slice.offset(run);
    if constexpr (Slice::kSigned) {  // as unsigned bytes, 128 more
      static_assert(!Slice::kHasOffset, "the shifted offset would round");
      word ^= 0x80808080u;
      offset = -128.0f * scale;
    }
    return make_float4(
        fmaf(scale, byte_to_f32(word, 0), offset),
        fmaf(scale, byte_to_f32(word, 1), offset),
        fmaf(scale, byte_to_f32(word, 2), offset),
        fmaf(scale, byte_to_f32(word, 3), offset));
  }
}

// The four bytes of a quad as two pairs of f16, exactly: they become the low bits of 1024.
template <typename Slice>
__device__ __forceinline__ uint2 slice_halves(const Slice& slice, int run, int index) {
  const uint32_t word = slice.word(run, index) ^ (Slice::kSigned ? 0x80808080u : 0u);
  constexpr uint32_t kBias = Slice::kSigned ? 0xe480e480u : 0xe400e400u;  // -1152 or -1024
  return make_uint2(
      half2_add(__byte_perm(word, 0x64646464u, 0x4140u), kBias),
      half2_add(__byte_perm(word, 0x64646464u, 0x4342u), kBias));
}

}  // namespace pavo::cuda
