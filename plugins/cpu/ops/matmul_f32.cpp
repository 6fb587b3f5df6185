// Matrix products in f32: weights of any type, decoded, against f32 activations.
//
// kLanes rows of weights form a panel: a chunk of their columns is decoded and transposed into f32
// vectors, one row a lane, and meets tiles of tokens whose activations are broadcast. So nothing is
// summed across lanes, and a weight is decoded once for all tokens.
#include "plugins/cpu/ops/matmul_problem.h"

// Nothing here gains from Highway's target with VNNI.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/ops/matmul_f32.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "plugins/cpu/ops/decode-inl.h"
#include "plugins/cpu/ops/q8_formats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

#if PAVO_CPU_HAVE_SIMD

// Tokens of a tile: 8 sums in flight hide the latency of two multiply-adds a cycle.
constexpr int kTileTokens = 8;
// Columns of a chunk, whole blocks of every type: 32 KB of panel with AVX-512, 16 KB with AVX2.
constexpr int64_t kChunkColumns = 512;
constexpr int64_t kPanelFloats = (kChunkColumns + kDecodeSlack) * kLanes;

// ---- Decoding ----------------------------------------------------------------------------------

// Codes as for the int8 products, then d * u + m.
template <class Format>
struct DecodeBlocks {
  using Shape = typename Format::Shape;
  static constexpr int64_t kUnitBytes = Format::kBlockBytes;
  static constexpr int64_t kUnitColumns = 32 * Format::kSubBlocks;

  static HWY_INLINE void decode(const PanelRows& rows, int64_t at, float* out) {
    static_assert(Shape::kHasMin && Shape::kCode != Code::kSigned8);
    const TagF32 df;
    alignas(64) uint8_t blocks[Format::kSubBlocks * Shape::kBlockBytes];
    Format::pack(rows, at, blocks);
    const auto low = hn::Set(TagU32(), 0xff);
    for (int64_t s = 0; s < Format::kSubBlocks; ++s) {
      const uint8_t* block = blocks + s * Shape::kBlockBytes;
      const auto* factors = reinterpret_cast<const float*>(block + 8 * kVectorBytes);
      for (int64_t i = 0; i < 8; ++i) {
        const int64_t plane = i * Shape::kPlanes / 8;
        const auto d = hn::Load(df, factors + plane * kLanes);
        const auto m = hn::Load(df, factors + (Shape::kPlanes + plane) * kLanes);
        auto codes = hn::BitCast(TagU32(), hn::Load(TagU8(), block + i * kVectorBytes));
        for (int64_t j = 0; j < 4; ++j, out += kLanes) {
          const auto u = hn::ConvertTo(df, hn::BitCast(TagI32(), hn::And(codes, low)));
          hn::Store(hn::MulAdd(d, u, m), df, out);
          codes = hn::ShiftRight<8>(codes);
        }
      }
    }
  }
};

// decode_columns of one type; `first` is a multiple of kChunkColumns.
using DecodeFn = void (*)(const PanelRows& rows, int64_t first, int64_t count, float* out);

DecodeFn decode_function(int32_t type) {
  switch (type) {
    case PAVO_TYPE_F32:
      return &decode_columns<DecodeF32>;
    case PAVO_TYPE_F16:
      return &decode_columns<DecodeF16>;
    case PAVO_TYPE_BF16:
      return &decode_columns<DecodeBF16>;
    case PAVO_TYPE_Q4_0:
      return &decode_columns<DecodeBlocks<FormatQ4_0>>;
    case PAVO_TYPE_Q4_1:
      return &decode_columns<DecodeBlocks<FormatQ4_1>>;
    case PAVO_TYPE_Q8_0:
      return &decode_columns<DecodeBlocks<FormatQ8_0<true>>>;
    case PAVO_TYPE_Q4_K:
      return &decode_columns<DecodeBlocks<FormatQ4_K>>;
    default:
      return &decode_columns<DecodeBlocks<FormatQ6_K>>;
  }
}

// ---- Products ----------------------------------------------------------------------------------

// sums [kWidth][kLanes] = products of `count` columns of a panel with the tokens at x[0..kWidth).
using DotFn = void (*)(const float* panel, int64_t count, const float* const* x, float* sums);

template <int kWidth>
void dot_columns_f32(const float* panel, int64_t count, const float* const* x, float* sums) {
  constexpr int kParts = kWidth >= kTileTokens ? 1 : kTileTokens / kWidth;  // sums of one token
  const TagF32 df;
  const float* token[kWidth];
  VecF32 acc[kParts][kWidth];
  for (int t = 0; t < kWidth; ++t) {
    token[t] = x[t];
    for (int i = 0; i < kParts; ++i) {
      acc[i][t] = hn::Zero(df);
    }
  }
  int64_t k = 0;
  for (; k + kParts <= count; k += kParts) {
#pragma GCC unroll 8
    for (int i = 0; i < kParts; ++i) {
      const auto w = hn::Load(df, panel + (k + i) * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < kWidth; ++t) {
        acc[i][t] = hn::MulAdd(w, hn::Set(df, token[t][k + i]), acc[i][t]);
      }
    }
  }
  for (; k < count; ++k) {
    const auto w = hn::Load(df, panel + k * kLanes);
    for (int t = 0; t < kWidth; ++t) {
      acc[0][t] = hn::MulAdd(w, hn::Set(df, token[t][k]), acc[0][t]);
    }
  }
  for (int t = 0; t < kWidth; ++t) {
    auto sum = acc[0][t];
    for (int i = 1; i < kParts; ++i) {
      sum = hn::Add(sum, acc[i][t]);
    }
    hn::Store(sum, df, sums + t * kLanes);
  }
}

// For a width that tile_width gives.
template <int kWidth = kTileTokens>
DotFn dot_function_f32(int64_t width) {
  if constexpr (kWidth > 1) {
    constexpr int kNext = kWidth > 4 ? kWidth - 2 : kWidth / 2;
    if (width <= kNext) {
      return dot_function_f32<kNext>(width);
    }
  }
  return &dot_columns_f32<kWidth>;
}

// Adds the sums of a tile to the outputs that exist, or sets them to sums + bias.
void add_tile(
    const MatmulProblem& p,
    int64_t first_row,
    int64_t first_token,
    int64_t tokens,
    bool first_chunk,
    const float* sums) {
  const int64_t rows = HWY_MIN(kLanes, p.rows - first_row);
  for (int64_t t = 0; t < tokens; ++t, sums += kLanes) {
    float* out = p.out + (first_token + t) * p.out_stride + first_row;
    if (!first_chunk) {
      for (int64_t r = 0; r < rows; ++r) {
        out[r] += sums[r];
      }
    } else if (p.bias != nullptr) {
      for (int64_t r = 0; r < rows; ++r) {
        out[r] = sums[r] + p.bias[first_row + r];
      }
    } else {
      __builtin_memcpy(out, sums, static_cast<size_t>(rows) * sizeof(float));
    }
  }
}

// One chunk of one panel with all tokens.
void multiply_chunk(
    const MatmulProblem& p,
    int64_t first_row,
    int64_t first_column,
    int64_t count,
    const float* panel) {
  const int64_t width = tile_width(p.tokens, kTileTokens);
  const DotFn dot = dot_function_f32(width);
  for (int64_t first = 0; first < p.tokens; first += width) {
    const int64_t tokens = HWY_MIN(width, p.tokens - first);
    alignas(64) float sums[kTileTokens * kLanes];
    const float* x[kTileTokens];
    for (int64_t t = 0; t < width; ++t) {  // those beyond the last repeat it
      x[t] = p.x + (first + HWY_MIN(t, tokens - 1)) * p.x_stride + first_column;
    }
    dot(panel, count, x, sums);
    add_tile(p, first_row, first, tokens, first_column == 0, sums);
  }
}

void run_matmul_f32(const MatmulProblem& p, ThreadPool& pool) {
  const DecodeFn decode = decode_function(p.weight_type);
  const int64_t row_bytes = pavo_type_row_bytes(p.weight_type, p.columns);
  pool.parallel_for(p.rows, kLanes, [&](int64_t begin, int64_t end, int32_t thread) {
    float* panel = reinterpret_cast<float*>(p.workspace) + thread * kPanelFloats;
    for (int64_t n = begin; n < end; n += kLanes) {
      const PanelRows rows = panel_rows(p.w, row_bytes, n, p.rows);
      int64_t k = 0;
      do {  // once for a product without columns: its outputs are the bias
        const int64_t count = HWY_MIN(kChunkColumns, p.columns - k);
        decode(rows, k, count, panel);
        multiply_chunk(p, n, k, count, panel);
        k += kChunkColumns;
      } while (k < p.columns);
    }
  });
}

int64_t matmul_f32_workspace(int64_t /*tokens*/, int64_t /*columns*/, int32_t threads) {
  return threads * kPanelFloats / kLanes * kWidestVector;
}

MatmulFunctions f32_functions() {
  return {&matmul_f32_workspace, &run_matmul_f32};
}

#else

MatmulFunctions f32_functions() {
  return {};
}

#endif  // PAVO_CPU_HAVE_SIMD

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pavo::cpu {

HWY_EXPORT(f32_functions);

MatmulFunctions matmul_f32_functions() {
  return HWY_DYNAMIC_DISPATCH(f32_functions)();
}

}  // namespace pavo::cpu
#endif
