// One page of K and V of one head as f32 tiles, and the products with them.
//
// K becomes panels of kLanes rows (decode-inl.h), so that scores of neighbouring rows are lanes; V
// stays row by row. With both, a product of the attention is the same loop: a row of factors times
// a matrix whose vectors lie at two strides.
#if defined(PAVO_PLUGINS_CPU_OPS_ATTENTION_TILES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAVO_PLUGINS_CPU_OPS_ATTENTION_TILES_INL_H_
#undef PAVO_PLUGINS_CPU_OPS_ATTENTION_TILES_INL_H_
#else
#define PAVO_PLUGINS_CPU_OPS_ATTENTION_TILES_INL_H_
#endif

#include "plugins/cpu/ops/attention_problem.h"
#include "plugins/cpu/ops/decode-inl.h"

#if PAVO_CPU_HAVE_SIMD
HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

constexpr int64_t kTileRows = PAVO_KV_PAGE_ROWS;
static_assert(kTileRows % kLanes == 0);

// Floats from panel to panel of a K tile.
HWY_INLINE int64_t k_panel_floats(int64_t dim) {
  return (dim + kDecodeSlack) * kLanes;
}

// Floats of a row of a V tile: whole q8_0 blocks, whole vectors.
HWY_INLINE int64_t v_row_floats(int64_t dim) {
  return (dim + 31) / 32 * 32;
}

// ---- K -----------------------------------------------------------------------------------------

// Int8 codes and a scale per 32 of them; rows are padded to whole blocks.
HWY_INLINE void decode_q8_panel(
    const PanelRows& codes, const PanelRows& scales, int64_t dim, float* out) {
  const TagF32 df;
  for (int64_t k = 0; k < dim; k += 32) {
    const auto d = load_halves(scales, k / 32 * 2);
    for (int64_t half = 0; half < 32; half += 16) {
      VecU8 v[4];
      load_transposed(codes, k + half, v);
      for (int64_t i = 0; i < 4; ++i) {
        const auto bytes = hn::BitCast(TagI32(), v[i]);
        const VecI32 values[4] = {
            hn::ShiftRight<24>(hn::ShiftLeft<24>(bytes)),
            hn::ShiftRight<24>(hn::ShiftLeft<16>(bytes)),
            hn::ShiftRight<24>(hn::ShiftLeft<8>(bytes)),
            hn::ShiftRight<24>(bytes)};
        const int64_t at = k + half + 4 * i;
        for (int64_t j = 0; j < 4 && at + j < dim; ++j) {
          hn::Store(hn::Mul(hn::ConvertTo(df, values[j]), d), df, out + (at + j) * kLanes);
        }
      }
    }
  }
}

// Decodes the panels that hold rows begin .. end - 1 of a head of a page.
void load_k_tile(
    const KvPool& pool, const std::byte* head, int64_t begin, int64_t end, float* tile) {
  const pavo_kv_layout& layout = pool.layout;
  const auto* low = reinterpret_cast<const uint8_t*>(head + layout.low_offset);
  const auto* scale = reinterpret_cast<const uint8_t*>(head + layout.scale_offset);
  for (int64_t first = begin / kLanes * kLanes; first < end; first += kLanes) {
    float* panel = tile + first / kLanes * k_panel_floats(pool.dim);
    PanelRows rows;
    PanelRows scales;
    for (int64_t r = 0; r < kLanes; ++r) {
      rows.row[r] = low + (first + r) * layout.low_row_bytes;
      scales.row[r] = scale + (first + r) * layout.scale_row_bytes;
    }
    switch (pool.type) {
      case PAVO_TYPE_F32:
        decode_columns<DecodeF32>(rows, 0, pool.dim, panel);
        break;
      case PAVO_TYPE_F16:
        decode_columns<DecodeF16>(rows, 0, pool.dim, panel);
        break;
      case PAVO_TYPE_BF16:
        decode_columns<DecodeBF16>(rows, 0, pool.dim, panel);
        break;
      default:
        decode_q8_panel(rows, scales, pool.dim, panel);
        break;
    }
  }
}

// ---- V -----------------------------------------------------------------------------------------

struct LoadRowF32 {
  using Stored = float;
  static HWY_INLINE VecF32 load(const float* values) { return hn::LoadU(TagF32(), values); }
};
struct LoadRowF16 {
  using Stored = uint16_t;
  static HWY_INLINE VecF32 load(const uint16_t* values) { return load_f16(values); }
};
struct LoadRowBF16 {
  using Stored = uint16_t;
  static HWY_INLINE VecF32 load(const uint16_t* values) { return load_bf16(values); }
};

// One dense row; what follows its end may not be ours to read.
template <class Loader>
HWY_INLINE void decode_dense_row(const std::byte* row, int64_t dim, float* out) {
  using Stored = typename Loader::Stored;
  const auto* values = reinterpret_cast<const Stored*>(row);
  int64_t i = 0;
  for (; i + kLanes <= dim; i += kLanes) {
    hn::Store(Loader::load(values + i), TagF32(), out + i);
  }
  if (i < dim) {
    Stored rest[kLanes] = {};
    __builtin_memcpy(rest, values + i, static_cast<size_t>(dim - i) * sizeof(Stored));
    hn::Store(Loader::load(rest), TagF32(), out + i);
  }
}

HWY_INLINE void decode_q8_row(
    const std::byte* codes, const std::byte* scales, int64_t dim, float* out) {
  const TagF32 df;
  const hn::Rebind<int8_t, TagF32> d8;
  const auto* values = reinterpret_cast<const int8_t*>(codes);
  for (int64_t k = 0; k < dim; k += 32) {
    uint16_t half;
    __builtin_memcpy(&half, scales + k / 32 * 2, sizeof half);
    const auto d = hn::Set(df, pavo_f16_to_f32(half));
    for (int64_t i = k; i < k + 32; i += kLanes) {
      const auto wide = hn::PromoteTo(TagI32(), hn::LoadU(d8, values + i));
      hn::Store(hn::Mul(hn::ConvertTo(df, wide), d), df, out + i);
    }
  }
}

// Decodes rows begin .. end - 1 of a head of a page to their places in a tile of kTileRows rows of
// v_row_floats.
void load_v_tile(
    const KvPool& pool, const std::byte* head, int64_t begin, int64_t end, float* tile) {
  const pavo_kv_layout& layout = pool.layout;
  for (int64_t r = begin; r < end; ++r) {
    const std::byte* low = head + layout.low_offset + r * layout.low_row_bytes;
    const std::byte* scales = head + layout.scale_offset + r * layout.scale_row_bytes;
    float* out = tile + r * v_row_floats(pool.dim);
    switch (pool.type) {
      case PAVO_TYPE_F32:
        decode_dense_row<LoadRowF32>(low, pool.dim, out);
        break;
      case PAVO_TYPE_F16:
        decode_dense_row<LoadRowF16>(low, pool.dim, out);
        break;
      case PAVO_TYPE_BF16:
        decode_dense_row<LoadRowBF16>(low, pool.dim, out);
        break;
      default:
        decode_q8_row(low, scales, pool.dim, out);
        break;
    }
  }
}

// ---- Products ----------------------------------------------------------------------------------

// c[m][n] (+)= sum over k of a[m][k] * b[k][n]. The vector of columns v * kLanes .. of row k of b
// lies at b + k * b_row + v * b_vector.
struct Product {
  const float* a;
  int64_t a_row;
  const float* b;
  int64_t b_row, b_vector;
  float* c;
  int64_t c_row;
  int64_t rows, depth, vectors;
  bool add;
};

template <int kRows, int kVectors>
HWY_INLINE void multiply_part(const Product& p, int64_t row, int64_t vector) {
  const TagF32 df;
  const float* a = p.a + row * p.a_row;
  const float* b = p.b + vector * p.b_vector;
  float* c = p.c + row * p.c_row + vector * kLanes;
  VecF32 sums[kRows][kVectors];
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kVectors; ++v) {
      sums[m][v] = p.add ? hn::Load(df, c + m * p.c_row + v * kLanes) : hn::Zero(df);
    }
  }
  for (int64_t k = 0; k < p.depth; ++k) {
    VecF32 columns[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      columns[v] = hn::Load(df, b + k * p.b_row + v * p.b_vector);
    }
#pragma GCC unroll 4
    for (int m = 0; m < kRows; ++m) {
      const auto factor = hn::Set(df, a[m * p.a_row + k]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        sums[m][v] = hn::MulAdd(factor, columns[v], sums[m][v]);
      }
    }
  }
  for (int m = 0; m < kRows; ++m) {
    for (int v = 0; v < kVectors; ++v) {
      hn::Store(sums[m][v], df, c + m * p.c_row + v * kLanes);
    }
  }
}

template <int kVectors>
void multiply_columns(const Product& p, int64_t vector) {
  int64_t row = 0;
  for (; row + 4 <= p.rows; row += 4) {
    multiply_part<4, kVectors>(p, row, vector);
  }
  switch (p.rows - row) {
    case 3:
      return multiply_part<3, kVectors>(p, row, vector);
    case 2:
      return multiply_part<2, kVectors>(p, row, vector);
    case 1:
      return multiply_part<1, kVectors>(p, row, vector);
    default:
      return;
  }
}

void multiply(const Product& p) {
  constexpr int kVectors = kRegisters == 32 ? 4 : 2;  // 4 * kVectors sums stay in registers
  int64_t vector = 0;
  for (; vector + kVectors <= p.vectors; vector += kVectors) {
    multiply_columns<kVectors>(p, vector);
  }
  for (; vector < p.vectors; ++vector) {
    multiply_columns<1>(p, vector);
  }
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // PAVO_CPU_HAVE_SIMD

#endif  // include guard
