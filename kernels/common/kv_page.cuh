// K/V pages on the device: where a row lies, and how its values are read and written. The layout is
// that of pavo/quant.h, and so are the rounded bytes.
//
// A cache type is one KvCodec and its name in PAVO_KV_TYPES; kernels know no types. Everything here
// compiles for the host too, where tests compare it with quant.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include "pavo/quant.h"

#include "kernels/common/weight_layout.h"

namespace pavo::cuda {

struct KvPool {
  std::byte* data;
  int64_t pages;
  int64_t head_bytes;
  int32_t heads;
  int32_t dims;
  int32_t type;
  // Parts of one head of one page, in bytes from its start; the low part begins at 0.
  int32_t low_row_bytes, low_unit_bytes;  // a unit: eight values
  int32_t scale_offset, scale_row_bytes;

  // Start of a head of a page; NULL if the pool has no such page.
  PAVO_HOST_DEVICE std::byte* head(int64_t page, int64_t head) const {
    return page < 0 || page >= pages ? nullptr : data + (page * heads + head) * head_bytes;
  }
};

constexpr int64_t kMaxKvDims = 65536;  // pavo_kv_layout_init; all offsets fit 32 bits

// `tensor` is [pages, heads, PAVO_KV_PAGE_ROWS, dims] of a type that kv_type_known knows.
inline KvPool kv_pool(const pavo_tensor& tensor, std::byte* data) {
  KvPool pool{};
  pavo_kv_layout layout{};
  if (pavo_kv_layout_init(tensor.type, tensor.shape[3], &layout) != 0) {
    return pool;  // no pages
  }
  pool.data = data;
  pool.pages = tensor.shape[0];
  pool.head_bytes = layout.head_bytes;
  pool.heads = static_cast<int32_t>(tensor.shape[1]);
  pool.dims = static_cast<int32_t>(tensor.shape[3]);
  pool.type = tensor.type;
  pool.low_row_bytes = static_cast<int32_t>(layout.low_row_bytes);
  const bool blocks = layout.scale_row_bytes != 0;
  const int64_t values = blocks ? pavo_align_up(pool.dims, PAVO_QK) : pool.dims;
  pool.low_unit_bytes = static_cast<int32_t>(8 * layout.low_row_bytes / values);
  pool.scale_offset = static_cast<int32_t>(layout.scale_offset);
  pool.scale_row_bytes = static_cast<int32_t>(layout.scale_row_bytes);
  return pool;
}

// Where the eight values k..k+7 of a row lie, k a multiple of 8.
struct KvUnit {
  const std::byte* low;
  const std::byte* scale;  // of the block; has no meaning for a type without
};

PAVO_HOST_DEVICE inline KvUnit kv_unit(
    const KvPool& pool, const std::byte* head, int32_t row, int32_t k) {
  return {
      head + row * pool.low_row_bytes + k / 8 * pool.low_unit_bytes,
      head + pool.scale_offset + row * pool.scale_row_bytes + k / PAVO_QK * 2};
}

// Eight neighbouring values of a row as they lie in memory; all zero means eight zeros. Fetching
// and decoding are two steps, so that many loads can be on their way at once.
struct KvRaw8 {
  uint32_t word[8];
  uint32_t scale;
};

// How K/V bytes are loaded: once by the whole launch ...
template <typename Arch>
struct LoadOnce {
  template <typename T>
  static __device__ __forceinline__ T load(const T* address) {
    return Arch::load_streaming(address);
  }
};

// ... or by many blocks, so that they are to stay in the caches.
struct LoadAgain {
  template <typename T>
  static __device__ __forceinline__ T load(const T* address) {
    return *address;
  }
};

PAVO_HOST_DEVICE inline float kv_half(uint32_t bits) {
  __half_raw raw;
  raw.x = static_cast<unsigned short>(bits);
  return __half2float(__half(raw));
}

// A codec has
//   fetch8<Load>(unit), decode8(raw, out): the unit must be 16-byte aligned, or as large as it is
//     if that is less: dims a multiple of 8, the pool aligned
//   value<Load>(pool, head, row, k): any k below dims
//   store(pool, head, row, k, value, amax): value k of a row, k below the padded dims; amax is the
//     largest magnitude of the block of 32 that k belongs to. All values of a block are stored.
template <int32_t kType>
struct KvCodec;

template <typename T>
PAVO_HOST_DEVICE inline const T* kv_low(
    const KvPool& pool, const std::byte* head, int32_t row, int32_t k) {
  return reinterpret_cast<const T*>(head + row * pool.low_row_bytes) + k;
}

template <typename T>
PAVO_HOST_DEVICE inline void kv_store_low(
    const KvPool& pool, std::byte* head, int32_t row, int32_t k, T value) {
  *(reinterpret_cast<T*>(head + row * pool.low_row_bytes) + k) = value;
}

template <>
struct KvCodec<PAVO_TYPE_F32> {
  template <typename Load>
  static PAVO_HOST_DEVICE KvRaw8 fetch8(const KvUnit& unit) {
    const auto* address = reinterpret_cast<const uint4*>(unit.low);
    const uint4 a = Load::load(address);
    const uint4 b = Load::load(address + 1);
    return {{a.x, a.y, a.z, a.w, b.x, b.y, b.z, b.w}, 0};
  }
  static PAVO_HOST_DEVICE void decode8(const KvRaw8& raw, float* out) {
    for (int i = 0; i < 8; ++i) {
      out[i] = pavo_f32_from_bits(raw.word[i]);
    }
  }
  template <typename Load>
  static PAVO_HOST_DEVICE float value(
      const KvPool& pool, const std::byte* head, int32_t row, int32_t k) {
    return Load::load(kv_low<float>(pool, head, row, k));
  }
  static PAVO_HOST_DEVICE void store(
      const KvPool& pool, std::byte* head, int32_t row, int32_t k, float value, float) {
    if (k < pool.dims) {
      kv_store_low<float>(pool, head, row, k, value);
    }
  }
};

// f16 and bf16: eight values are one vector of 16 bytes.
struct KvCodec16 {
  template <typename Load>
  static PAVO_HOST_DEVICE KvRaw8 fetch8(const KvUnit& unit) {
    const uint4 a = Load::load(reinterpret_cast<const uint4*>(unit.low));
    return {{a.x, a.y, a.z, a.w, 0, 0, 0, 0}, 0};
  }
};

template <>
struct KvCodec<PAVO_TYPE_F16> : KvCodec16 {
  static PAVO_HOST_DEVICE void decode8(const KvRaw8& raw, float* out) {
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = kv_half(raw.word[i] & 0xffffu);
      out[2 * i + 1] = kv_half(raw.word[i] >> 16);
    }
  }
  template <typename Load>
  static PAVO_HOST_DEVICE float value(
      const KvPool& pool, const std::byte* head, int32_t row, int32_t k) {
    return kv_half(Load::load(kv_low<uint16_t>(pool, head, row, k)));
  }
  static PAVO_HOST_DEVICE void store(
      const KvPool& pool, std::byte* head, int32_t row, int32_t k, float value, float) {
    if (k < pool.dims) {
      kv_store_low<uint16_t>(pool, head, row, k, pavo_f32_to_f16(value));
    }
  }
};

template <>
struct KvCodec<PAVO_TYPE_BF16> : KvCodec16 {
  static PAVO_HOST_DEVICE void decode8(const KvRaw8& raw, float* out) {
    for (int i = 0; i < 4; ++i) {
      out[2 * i] = pavo_f32_from_bits(raw.word[i] << 16);
      out[2 * i + 1] = pavo_f32_from_bits(raw.word[i] & 0xffff0000u);
    }
  }
  template <typename Load>
  static PAVO_HOST_DEVICE float value(
      const KvPool& pool, const std::byte* head, int32_t row, int32_t k) {
    return pavo_bf16_to_f32(Load::load(kv_low<uint16_t>(pool, head, row, k)));
  }
  static PAVO_HOST_DEVICE void store(
      const KvPool& pool, std::byte* head, int32_t row, int32_t k, float value, float) {
    if (k < pool.dims) {
      kv_store_low<uint16_t>(pool, head, row, k, pavo_f32_to_bf16(value));
    }
  }
};

template <>
struct KvCodec<PAVO_TYPE_Q8_0> {
  static PAVO_HOST_DEVICE const uint16_t* scale(
      const KvPool& pool, const std::byte* head, int32_t row, int32_t k) {
    const std::byte* scales = head + pool.scale_offset + row * pool.scale_row_bytes;
    return reinterpret_cast<const uint16_t*>(scales) + k / PAVO_QK;
  }
  template <typename Load>
  static PAVO_HOST_DEVICE KvRaw8 fetch8(const KvUnit& unit) {
    const uint2 a = Load::load(reinterpret_cast<const uint2*>(unit.low));
    const uint16_t d = Load::load(reinterpret_cast<const uint16_t*>(unit.scale));
    return {{a.x, a.y, 0, 0, 0, 0, 0, 0}, d};
  }
  static PAVO_HOST_DEVICE void decode8(const KvRaw8& raw, float* out) {
    const float d = kv_half(raw.scale);
    for (int i = 0; i < 8; ++i) {
      out[i] = d * static_cast<float>(static_cast<int8_t>(raw.word[i / 4] >> (8 * (i % 4))));
    }
  }
  template <typename Load>
  static PAVO_HOST_DEVICE float value(
      const KvPool& pool, const std::byte* head, int32_t row, int32_t k) {
    return kv_half(Load::load(scale(pool, head, row, k))) *
           static_cast<float>(Load::load(kv_low<int8_t>(pool, head, row, k)));
  }
  static PAVO_HOST_DEVICE void store(
      const KvPool& pool, std::byte* head, int32_t row, int32_t k, float value, float amax) {
    float inverse;
    const uint16_t d = pavo_q8_0_scale(amax, &inverse);
    const int8_t quant = k < pool.dims ? pavo_q8_0_quant(value, inverse) : int8_t{0};
    kv_store_low<int8_t>(pool, head, row, k, quant);
    if (k % PAVO_QK == 0) {
      *const_cast<uint16_t*>(scale(pool, head, row, k)) = d;
    }
  }
};

// The cache types that kernels read and write.
#define PAVO_KV_TYPES(X) X(F32) X(F16) X(BF16) X(Q8_0)

inline bool kv_type_known(int32_t type) {
  switch (type) {
#define PAVO_KV_CASE(name) case PAVO_TYPE_##name:
    PAVO_KV_TYPES(PAVO_KV_CASE)
#undef PAVO_KV_CASE
    return true;
    default:
      return false;
  }
}

// Calls f with the codec of a type; not at all for an unknown type.
template <typename F>
__device__ __forceinline__ void with_kv_type(int32_t type, F&& f) {
  switch (type) {
#define PAVO_KV_CASE(name) \
  case PAVO_TYPE_##name:   \
    return f(KvCodec<PAVO_TYPE_##name>());
    PAVO_KV_TYPES(PAVO_KV_CASE)
#undef PAVO_KV_CASE
    default:
      return;
  }
}

}  // namespace pavo::cuda
