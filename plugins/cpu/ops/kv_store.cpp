// kv_store: the bytes of quant.h, a vector at a time.
#include <cstdint>
#include <cstring>

#include "plugins/cpu/kernel.h"
#include "plugins/cpu/kv_quantize.h"
#include "plugins/cpu/ops/row_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/ops/kv_store.cpp"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "plugins/cpu/ops/elementwise-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

// One q8_0 block of 32 values: quants to `low`; returns the scale's f16 bits.
HWY_INLINE uint16_t store_q8_0_block(const float* values, std::byte* low) {
  const hn::CappedTag<float, PAVO_QK> d;
  const hn::Rebind<int8_t, decltype(d)> d8;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  auto amax = hn::Zero(d);
  for (int64_t i = 0; i < PAVO_QK; i += width) {
    const auto magnitude = hn::Abs(hn::LoadU(d, values + i));
    amax = hn::Max(amax, hn::IfThenZeroElse(hn::IsNaN(magnitude), magnitude));
  }
  float inverse = 0.0F;
  const uint16_t scale = pavo_q8_0_scale(hn::GetLane(hn::MaxOfLanes(d, amax)), &inverse);
  const auto limit = hn::Set(d, 127.0F);
  for (int64_t i = 0; i < PAVO_QK; i += width) {
    const auto scaled = hn::Mul(hn::LoadU(d, values + i), hn::Set(d, inverse));
    const auto number = hn::IfThenZeroElse(hn::IsNaN(scaled), scaled);
    // Clamping before rounding gives the same integers, since the limits are integers.
    const auto clamped = hn::Max(hn::Neg(limit), hn::Min(number, limit));
    hn::StoreU(hn::DemoteTo(d8, hn::NearestInt(clamped)), d8, reinterpret_cast<int8_t*>(low) + i);
  }
  return scale;
}

HWY_INLINE void store_q8_0_row(
    const pavo_kv_layout& layout,
    const float* values,
    int64_t count,
    std::byte* head,
    int64_t row) {
  std::byte* low = head + layout.low_offset + row * layout.low_row_bytes;
  std::byte* scales = head + layout.scale_offset + row * layout.scale_row_bytes;
  for (int64_t begin = 0; begin < count; begin += PAVO_QK) {
    float padded[PAVO_QK] = {};
    const float* block = values + begin;
    if (begin + PAVO_QK > count) {
      std::memcpy(padded, block, static_cast<size_t>(count - begin) * sizeof(float));
      block = padded;
    }
    const uint16_t scale = store_q8_0_block(block, low + begin);
    std::memcpy(scales + begin / PAVO_QK * 2, &scale, sizeof scale);
  }
}

// The low halves of the lanes.
template <class D>
HWY_INLINE void store_low_halves(D /*d*/, hn::Vec<D> bits, std::byte* out) {
  const hn::Rebind<uint16_t, D> d16;
  hn::StoreU(hn::TruncateTo(d16, bits), d16, reinterpret_cast<uint16_t*>(out));
}

HWY_INLINE void store_bf16_row(const float* values, int64_t count, std::byte* out) {
  for_each_vector(count, [&](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<uint32_t, decltype(d)> d32;
    const auto bits = hn::BitCast(d32, hn::LoadU(d, values + i));
    const auto high = hn::ShiftRight<16>(bits);
    // Half a unit less one plus the lowest kept bit: ties to even.
    const auto odd = hn::And(high, hn::Set(d32, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(d32, 0x7fff))));
    const auto quiet = hn::Or(high, hn::Set(d32, 0x40));
    const auto magnitude = hn::And(bits, hn::Set(d32, 0x7fffffff));
    const auto is_nan = hn::Gt(magnitude, hn::Set(d32, 0x7f800000));
    store_low_halves(d32, hn::IfThenElse(is_nan, quiet, rounded), out + 2 * i);
  });
}

// As pavo_f32_to_f16, branch by branch: a conversion instruction would keep more of a NaN.
HWY_INLINE void store_f16_row(const float* values, int64_t count, std::byte* out) {
  for_each_vector(count, [&](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<uint32_t, decltype(d)> d32;
    const auto bits = hn::BitCast(d32, hn::LoadU(d, values + i));
    const auto sign = hn::And(hn::ShiftRight<16>(bits), hn::Set(d32, 0x8000));
    const auto magnitude = hn::And(bits, hn::Set(d32, 0x7fffffff));
    // Normal: re-biased, ties to even.
    const auto rebased = hn::Sub(magnitude, hn::Set(d32, 0x38000000));
    const auto odd = hn::And(hn::ShiftRight<13>(rebased), hn::Set(d32, 1));
    auto half = hn::ShiftRight<13>(hn::Add(rebased, hn::Add(odd, hn::Set(d32, 0xfff))));
    // Subnormal: next to 0.5 the last bit of an f32 is worth 2^-24, the unit of these.
    const auto aligned = hn::Add(hn::BitCast(d, magnitude), hn::Set(d, 0.5F));
    const auto tiny = hn::Sub(hn::BitCast(d32, aligned), hn::Set(d32, 0x3f000000));
    half = hn::IfThenElse(hn::Lt(magnitude, hn::Set(d32, 0x38800000)), tiny, half);
    const auto overflow = hn::Gt(magnitude, hn::Set(d32, 0x477fefff));
    half = hn::IfThenElse(overflow, hn::Set(d32, 0x7c00), half);
    const auto is_nan = hn::Gt(magnitude, hn::Set(d32, 0x7f800000));
    half = hn::IfThenElse(is_nan, hn::Set(d32, 0x7e00), half);
    store_low_halves(d32, hn::Or(sign, half), out + 2 * i);
  });
}

void store_row(
    int32_t type,
    const pavo_kv_layout& layout,
    const float* values,
    int64_t count,
    std::byte* head,
    int64_t row) {
  std::byte* low = head + layout.low_offset + row * layout.low_row_bytes;
  switch (type) {
    case PAVO_TYPE_F32:
      std::memcpy(low, values, static_cast<size_t>(count) * sizeof(float));
      return;
    case PAVO_TYPE_F16:
      return store_f16_row(values, count, low);
    case PAVO_TYPE_BF16:
      return store_bf16_row(values, count, low);
    default:
      return store_q8_0_row(layout, values, count, head, row);
  }
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pavo::cpu {
namespace {

HWY_EXPORT(store_row);

struct KvStoreRows {
  static constexpr const char* kName = "kv_store_rows";
  static constexpr int32_t kOp = pavo_op_kv_store;
  static constexpr int32_t kDecision = PAVO_ACCEPT;

  // store_row knows every type that the reference takes.
  static bool supports(const NodeQuery& /*query*/, pavo_verdict* /*verdict*/) { return true; }

  static int64_t workspace_bytes(const NodeQuery& /*query*/) { return 0; }

  static int32_t launch(const KernelArgs& args, pavo_error* error) {
    const Operand x = args.input(0);
    const Operand pool = args.input(1);
    const Operand slots = args.input(2);
    const int64_t tokens = x.dim(0);
    const int64_t heads = x.dim(1);
    const int64_t dim = x.dim(2);
    const int32_t code = check_slots(slots, tokens, pool.dim(0), error);
    if (code != PAVO_OK) {
      return code;
    }
    pavo_kv_layout layout{};
    pavo_kv_layout_init(pool.tensor->type, dim, &layout);
    const int64_t slot_stride = tokens > 1 ? slots.tensor->stride[0] : 0;
    const auto kernel = HWY_DYNAMIC_DISPATCH(store_row);
    const int64_t grain = row_grain(dim);
    args.pool.parallel_for(tokens * heads, grain, [&](int64_t begin, int64_t end, int32_t) {
      for (int64_t r = begin; r < end; ++r) {
        const int64_t slot =
            *reinterpret_cast<const int32_t*>(slots.data + r / heads * slot_stride);
        if (slot >= 0) {
          const int64_t head = slot / PAVO_KV_PAGE_ROWS * heads + r % heads;
          kernel(
              pool.tensor->type,
              layout,
              row_of(x, r),
              dim,
              pool.data + head * layout.head_bytes,
              slot % PAVO_KV_PAGE_ROWS);
        }
      }
    });
    return PAVO_OK;
  }
};

}  // namespace

std::span<const Kernel> kv_store_kernels() {
  static constexpr Kernel kKernels[] = {entry<KvStoreRows>()};
  return kKernels;
}

}  // namespace pavo::cpu
#endif  // HWY_ONCE
