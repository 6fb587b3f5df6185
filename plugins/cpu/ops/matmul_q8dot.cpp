// Matrix products of quantised weights with int8 activations.
//
// kLanes rows of weights form a panel: their blocks are transposed into byte codes, four of one row
// in a 32-bit lane, and meet a tile of tokens whose activations are broadcast. So a block's scales
// cost one multiply-add per 32 * kLanes products and nothing is ever summed across lanes. With few
// tokens a block is used as soon as it is packed (decode streams the weights); with more than a
// tile the panel is packed once for all of them. Sums are integers within a block, f32 between
// blocks.
#include "plugins/cpu/ops/matmul_problem.h"
#include "plugins/cpu/simd_targets.h"

// VNNI is asked for at run time (int8_dot-inl.h), so Highway's own target with it adds nothing.
#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/ops/matmul_q8dot.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#include "plugins/cpu/ops/q8_activations-inl.h"
#include "plugins/cpu/ops/q8_formats-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

#if PAVO_CPU_HAVE_SIMD

// Tokens of a tile: an integer and a float accumulator each, beside codes, scales and a temporary.
constexpr int kTileTokens = kRegisters == 32 ? 8 : 4;
constexpr int kMostTileTokens = 8;

// Panel blocks that are packed and used in one go while weights are streamed: small enough for the
// L1 cache, and one 256-value block.
constexpr int64_t kStreamBlocks = 8;

// The activations of one tile, from one block on.
struct TileBlock {
  const int8_t* codes;
  const float* scales;
  const float* sums;

  HWY_INLINE void advance(int64_t blocks, int64_t width, int64_t planes) {
    codes += blocks * width * 32;
    scales += blocks * width;
    sums += blocks * width * planes;
  }
};

// ---- Products of a panel with a tile -----------------------------------------------------------

// acc[t] += products of one panel block with token t; a lane is a row.
template <class Shape, class Dot, int kWidth>
HWY_INLINE void dot_block(const uint8_t* panel, const TileBlock& x, VecF32 (&acc)[kWidth]) {
  constexpr int kVectors = 8 / Shape::kPlanes;
  const TagF32 df;
  const auto* factors = reinterpret_cast<const float*>(panel + 8 * kVectorBytes);
  for (int plane = 0; plane < Shape::kPlanes; ++plane) {
    VecI32 products[kWidth];
    dot_columns<Dot, Shape::kCode, kVectors>(
        panel + plane * kVectors * kVectorBytes, x.codes + plane * 16, products);
    const auto d = hn::Load(df, factors + plane * kLanes);
#pragma GCC unroll 8
    for (int t = 0; t < kWidth; ++t) {
      const auto scale = hn::Mul(d, hn::Set(df, x.scales[t]));
      acc[t] = hn::MulAdd(hn::ConvertTo(df, products[t]), scale, acc[t]);
    }
    if constexpr (Shape::kHasMin) {
      const auto m = hn::Load(df, factors + (Shape::kPlanes + plane) * kLanes);
#pragma GCC unroll 8
      for (int t = 0; t < kWidth; ++t) {
        acc[t] = hn::MulAdd(m, hn::Set(df, x.sums[plane * kWidth + t]), acc[t]);
      }
    }
  }
}

// sums [kWidth][kLanes] += products of `blocks` panel blocks with a tile.
template <class Shape, class Dot, int kWidth>
void dot_blocks(const uint8_t* panel, int64_t blocks, TileBlock x, float* sums) {
  const TagF32 df;
  VecF32 acc[kWidth];
  for (int t = 0; t < kWidth; ++t) {
    acc[t] = hn::Load(df, sums + t * kLanes);
  }
  for (int64_t b = 0; b < blocks; ++b) {
    dot_block<Shape, Dot, kWidth>(panel, x, acc);
    panel += Shape::kBlockBytes;
    x.advance(1, kWidth, Shape::kPlanes);
  }
  for (int t = 0; t < kWidth; ++t) {
    hn::Store(acc[t], df, sums + t * kLanes);
  }
}

using DotFn = void (*)(const uint8_t* panel, int64_t blocks, TileBlock x, float* sums);

// For a width that tile_width gives.
template <class Shape, class Dot, int kWidth = kTileTokens>
DotFn dot_function(int64_t width) {
  if constexpr (kWidth > 1) {
    constexpr int kNext = kWidth > 4 ? kWidth - 2 : kWidth / 2;
    if (width <= kNext) {
      return dot_function<Shape, Dot, kNext>(width);
    }
  }
  return &dot_blocks<Shape, Dot, kWidth>;
}

// ---- Panels ------------------------------------------------------------------------------------

// Packs `count` stored blocks from `first` on.
using PackFn = void (*)(const PanelRows& rows, int64_t first, int64_t count, uint8_t* out);

template <class Format>
void pack_blocks(const PanelRows& rows, int64_t first, int64_t count, uint8_t* out) {
  for (int64_t i = first; i < first + count; ++i) {
    Format::pack(rows, i * Format::kBlockBytes, out);
    out += Format::kSubBlocks * Format::Shape::kBlockBytes;
  }
}

// A product with what its type and size decide.
struct Work {
  const MatmulProblem& p;
  TiledActivations x;
  PackFn pack;
  DotFn dot;
  int64_t stored_block_bytes;
  int64_t sub_blocks;  // panel blocks of a stored one
};

PanelRows rows_of(const Work& work, int64_t first_row) {
  const int64_t row_bytes = work.x.blocks / work.sub_blocks * work.stored_block_bytes;
  return panel_rows(work.p.w, row_bytes, first_row, work.p.rows);
}

// Writes the sums [tokens][kLanes] of a tile: the rows and tokens that exist, with the bias.
void store_tile(const Work& work, int64_t first_row, int64_t first_token, const float* sums) {
  const TagF32 df;
  const MatmulProblem& p = work.p;
  const int64_t rows = HWY_MIN(kLanes, p.rows - first_row);
  const auto bytes = static_cast<size_t>(rows) * sizeof(float);
  alignas(64) float lanes[kLanes] = {};
  if (p.bias != nullptr) {
    __builtin_memcpy(lanes, p.bias + first_row, bytes);
  }
  const auto bias = hn::Load(df, lanes);
  const int64_t tokens = HWY_MIN(work.x.width, p.tokens - first_token);
  for (int64_t t = 0; t < tokens; ++t) {
    float* out = p.out + (first_token + t) * p.out_stride + first_row;
    const auto result = hn::Add(hn::Load(df, sums + t * kLanes), bias);
    if (rows == kLanes) {
      hn::StoreU(result, df, out);
    } else {
      hn::Store(result, df, lanes);
      __builtin_memcpy(out, lanes, bytes);
    }
  }
}

// One panel with the only tile: blocks are used as soon as they are packed.
void stream_panel(const Work& work, int64_t first_row, uint8_t* panel) {
  const PanelRows rows = rows_of(work, first_row);
  alignas(64) float sums[kTileTokens * kLanes] = {};
  TileBlock x = {work.x.codes, work.x.scales, work.x.sums};
  for (int64_t b = 0; b < work.x.blocks; b += kStreamBlocks) {
    const int64_t count = HWY_MIN(kStreamBlocks, work.x.blocks - b);
    work.pack(rows, b / work.sub_blocks, count / work.sub_blocks, panel);
    work.dot(panel, count, x, sums);
    x.advance(count, work.x.width, work.x.planes);
  }
  store_tile(work, first_row, 0, sums);
}

// One panel with all tiles.
void multiply_panel(const Work& work, int64_t first_row, uint8_t* panel) {
  const int64_t blocks = work.x.blocks;
  work.pack(rows_of(work, first_row), 0, blocks / work.sub_blocks, panel);
  TileBlock x = {work.x.codes, work.x.scales, work.x.sums};
  for (int64_t t = 0; t < work.p.tokens; t += work.x.width) {
    alignas(64) float sums[kTileTokens * kLanes] = {};
    work.dot(panel, blocks, x, sums);
    store_tile(work, first_row, t, sums);
    x.advance(blocks, work.x.width, work.x.planes);
  }
}

// ---- The whole product -------------------------------------------------------------------------

// Bytes for one panel of any format, a multiple of 64.
int64_t panel_bytes(int64_t columns, int64_t vector_bytes = kVectorBytes) {
  return (columns / 32 * vector_bytes * (8 + 2 * 2) + 63) / 64 * 64;
}

// Lays out the activations in the workspace and returns how many tiles they make.
int64_t place_activations(const MatmulProblem& p, int32_t threads, TiledActivations* x) {
  const int64_t tiles = (p.tokens + x->width - 1) / x->width;
  const int64_t blocks = tiles * x->width * x->blocks;
  x->scales = reinterpret_cast<float*>(p.workspace + threads * panel_bytes(p.columns));
  x->sums = x->scales + blocks;
  x->codes = reinterpret_cast<int8_t*>(x->sums + blocks * x->planes);
  return tiles;
}

void run_work(Work* work, ThreadPool& pool) {
  const MatmulProblem& p = work->p;
  const int64_t tiles = place_activations(p, pool.threads(), &work->x);
  pool.parallel_for(tiles, 1, [&](int64_t begin, int64_t end, int32_t /*thread*/) {
    for (int64_t tile = begin; tile < end; ++tile) {
      quantize_tile(work->x, tile, p.x, p.x_stride, p.tokens);
    }
  });
  pool.parallel_for(p.rows, kLanes, [&](int64_t begin, int64_t end, int32_t thread) {
    auto* panel = reinterpret_cast<uint8_t*>(p.workspace + thread * panel_bytes(p.columns));
    for (int64_t n = begin; n < end; n += kLanes) {
      if (tiles == 1) {
        stream_panel(*work, n, panel);
      } else {
        multiply_panel(*work, n, panel);
      }
    }
  });
}

template <class Format, class Dot>
void run_format(const MatmulProblem& p, ThreadPool& pool) {
  using Shape = typename Format::Shape;
  Work work = {p, {}, &pack_blocks<Format>, nullptr, Format::kBlockBytes, Format::kSubBlocks};
  work.x.blocks = p.columns / 32;
  work.x.width = tile_width(p.tokens, kTileTokens);
  work.x.planes = Shape::kPlanes;
  work.dot = dot_function<Shape, Dot>(work.x.width);
  run_work(&work, pool);
}

template <class Dot>
void run_dot(const MatmulProblem& p, ThreadPool& pool) {
  switch (p.weight_type) {
    case PAVO_TYPE_Q4_0:
      return run_format<FormatQ4_0, Dot>(p, pool);
    case PAVO_TYPE_Q4_1:
      return run_format<FormatQ4_1, Dot>(p, pool);
    case PAVO_TYPE_Q8_0:
      return run_format<FormatQ8_0<Dot::kVnni>, Dot>(p, pool);
    case PAVO_TYPE_Q4_K:
      return run_format<FormatQ4_K, Dot>(p, pool);
    default:
      return run_format<FormatQ6_K, Dot>(p, pool);
  }
}

void run_matmul_q8dot(const MatmulProblem& p, ThreadPool& pool) {
#if HWY_TARGET <= HWY_AVX2
  if (has_vnni(kVectorBytes)) {
    return run_dot<Vnni>(p, pool);
  }
#endif
  run_dot<Madd>(p, pool);
}

// As place_activations lays it out, for the format and the vectors that need most.
int64_t matmul_q8dot_workspace(int64_t tokens, int64_t columns, int32_t threads) {
  const int64_t blocks = (tokens + kMostTileTokens) * (columns / 32);
  return threads * panel_bytes(columns, kWidestVector) + blocks * (32 + 4 + 2 * 4);
}

MatmulFunctions q8dot_functions() {
  return {&matmul_q8dot_workspace, &run_matmul_q8dot};
}

#else

MatmulFunctions q8dot_functions() {
  return {};
}

#endif  // PAVO_CPU_HAVE_SIMD

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pavo::cpu {

HWY_EXPORT(q8dot_functions);

MatmulFunctions matmul_q8dot_functions() {
  return HWY_DYNAMIC_DISPATCH(q8dot_functions)();
}

}  // namespace pavo::cpu
#endif
