// The inner kernel of attention over pages: online softmax in f32, page by page. A page of K and V
// is decoded once for all tokens of the block and all query heads of the K/V head.
#include "plugins/cpu/ops/attention_problem.h"

#undef HWY_DISABLED_TARGETS
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/ops/attention_pages.cpp"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "plugins/cpu/ops/attention_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

#if PAVO_CPU_HAVE_SIMD

constexpr float kMinusInfinity = -__builtin_inff();

// Everything that an item works with. A row is a pair of token and query head: token * group +
// head.
struct Block {
  const AttentionProblem& p;
  const AttentionItem& item;
  int64_t g;
  int64_t rows;
  int64_t value_row;         // floats of a row of values
  float* q = nullptr;        // [rows][D], scaled
  float* scores = nullptr;   // [rows][kTileRows]
  float* values = nullptr;   // [rows][value_row]
  float* largest = nullptr;  // [rows]
  float* weight = nullptr;   // [rows]
  float* k_tile = nullptr;
  float* v_tile = nullptr;

  int64_t token(int64_t row) const { return item.first_token + row / p.group(); }
  int64_t head(int64_t row) const { return g * p.group() + row % p.group(); }
};

int64_t padded(int64_t floats) {
  return (floats + 15) / 16 * 16;
}

int64_t block_floats(int64_t head_dim, int64_t value_dim, int64_t rows) {
  return padded(rows * head_dim) + rows * (kTileRows + v_row_floats(value_dim)) + 2 * padded(rows) +
         kTileRows * (head_dim + kDecodeSlack) + kTileRows * v_row_floats(value_dim);
}

Block make_block(const AttentionProblem& p, const AttentionItem& item, int64_t g, float* scratch) {
  Block block = {p, item, g, item.tokens * p.group(), v_row_floats(p.v.dim)};
  const auto take = [&](int64_t floats) HWY_ATTR {
    float* at = scratch;
    scratch += floats;
    return at;
  };
  block.q = take(padded(block.rows * p.k.dim));
  block.scores = take(block.rows * kTileRows);
  block.values = take(block.rows * block.value_row);
  block.largest = take(padded(block.rows));
  block.weight = take(padded(block.rows));
  block.k_tile = take(kTileRows * (p.k.dim + kDecodeSlack));
  block.v_tile = take(kTileRows * block.value_row);
  for (int64_t row = 0; row < block.rows; ++row) {
    const float* from = p.q + block.token(row) * p.q_token + block.head(row) * p.q_head;
    for (int64_t d = 0; d < p.k.dim; ++d) {
      block.q[row * p.k.dim + d] = from[d] * p.scale;
    }
    block.largest[row] = kMinusInfinity;
    block.weight[row] = 0.0F;
  }
  __builtin_memset(
      block.values, 0, static_cast<size_t>(block.rows * block.value_row) * sizeof(float));
  return block;
}

// What a row of scores needs to know about its token.
struct RowView {
  int64_t begin, end;  // columns of the tile that are seen
  float slope;
  float distance;     // of column 0 from the token's own row
  const float* mask;  // of the token, or NULL: mask[i + mask_shift] is added to column i
  int64_t mask_shift;
};

RowView view_row(const Block& block, int64_t row, int64_t first_row) {
  const AttentionProblem& p = block.p;
  const int64_t t = block.token(row);
  const int64_t own = p.rows[t];
  const int64_t length = p.lengths[block.item.sequence];
  RowView view = {};
  view.begin = HWY_MAX(p.rows_begin(own), block.item.row_begin) - first_row;
  view.end = HWY_MIN(p.rows_end(own, length), block.item.row_end) - first_row;
  view.begin = HWY_MAX(view.begin, 0);
  view.end = HWY_MIN(view.end, kTileRows);
  view.slope = p.slopes != nullptr ? p.slopes[block.head(row)] : 0.0F;
  view.distance = static_cast<float>(first_row - own);
  if (p.mask != nullptr) {
    view.mask = p.mask + t * p.mask_pitch;
    view.mask_shift = first_row - (length - p.mask_columns);
  }
  return view;
}

// Turns the products of a row, columns begin .. end - 1, into scores with -inf where the row does
// not see. Returns the largest; *poison becomes NaN if a visible product is NaN or infinite.
float finish_scores(
    const AttentionProblem& p,
    const RowView& view,
    int64_t begin,
    int64_t end,
    float* scores,
    float* poison) {
  const TagF32 df;
  const TagI32 di;
  const auto minus_infinity = hn::Set(df, kMinusInfinity);
  const auto first = hn::Set(di, static_cast<int32_t>(view.begin));
  const auto last = hn::Set(di, static_cast<int32_t>(view.end));
  auto largest = minus_infinity;
  auto bad = hn::Zero(df);
  for (int64_t i = begin; i < end; i += kLanes) {
    const auto column = hn::Iota(di, static_cast<int32_t>(i));
    const auto seen =
        hn::RebindMask(df, hn::And(hn::Not(hn::Lt(column, first)), hn::Lt(column, last)));
    auto score = hn::Load(df, scores + i);
    bad = hn::Add(bad, hn::IfThenElseZero(seen, hn::Sub(score, score)));
    if (p.softcap > 0.0F) {
      const auto cap = hn::Set(df, p.softcap);
      score = hn::Mul(cap, hn::Tanh(df, hn::Div(score, cap)));
    }
    const auto distance = hn::Add(hn::ConvertTo(df, column), hn::Set(df, view.distance));
    score = hn::MulAdd(hn::Set(df, view.slope), distance, score);
    score = hn::IfThenElse(seen, score, minus_infinity);
    largest = hn::Max(largest, score);
    hn::Store(score, df, scores + i);
  }
  *poison += hn::GetLane(hn::SumOfLanes(df, bad));
  if (view.mask == nullptr) {
    return hn::GetLane(hn::MaxOfLanes(df, largest));
  }
  float most = kMinusInfinity;
  for (int64_t i = view.begin; i < view.end; ++i) {
    scores[i] += i + view.mask_shift >= 0 ? view.mask[i + view.mask_shift] : 0.0F;
    most = HWY_MAX(most, scores[i]);
  }
  return most;
}

// Scores to weights exp(score - largest), and the row's earlier sums to the new largest score.
void weigh_row(Block& block, int64_t row, float tile_largest, int64_t begin, int64_t end) {
  const TagF32 df;
  float* scores = block.scores + row * kTileRows;
  const float largest = HWY_MAX(block.largest[row], tile_largest);
  if (largest == kMinusInfinity) {
    __builtin_memset(scores + begin, 0, static_cast<size_t>(end - begin) * sizeof(float));
    return;
  }
  const auto shift = hn::Set(df, largest);
  auto sum = hn::Zero(df);
  for (int64_t i = begin; i < end; i += kLanes) {
    const auto weight = hn::Exp(df, hn::Sub(hn::Load(df, scores + i), shift));
    sum = hn::Add(sum, weight);
    hn::Store(weight, df, scores + i);
  }
  const float total = hn::GetLane(hn::SumOfLanes(df, sum));
  if (largest > block.largest[row]) {
    const float factor = __builtin_expf(block.largest[row] - largest);
    block.weight[row] *= factor;
    float* values = block.values + row * block.value_row;
    for (int64_t d = 0; d < block.value_row; d += kLanes) {
      hn::Store(hn::Mul(hn::Load(df, values + d), hn::Set(df, factor)), df, values + d);
    }
    block.largest[row] = largest;
  }
  block.weight[row] += total;
}

// Rows begin .. end - 1 of the page that starts at row first_row of the sequence.
void attend_page(
    Block& block,
    const std::byte* k,
    const std::byte* v,
    int64_t first_row,
    int64_t begin,
    int64_t end) {
  const AttentionProblem& p = block.p;
  load_k_tile(p.k, k, begin, end, block.k_tile);
  load_v_tile(p.v, v, begin, end, block.v_tile);
  const int64_t from = begin / kLanes * kLanes;
  const int64_t to = (end + kLanes - 1) / kLanes * kLanes;
  const int64_t panel = k_panel_floats(p.k.dim);
  multiply(
      {block.q,
       p.k.dim,
       block.k_tile + from / kLanes * panel,
       kLanes,
       panel,
       block.scores + from,
       kTileRows,
       block.rows,
       p.k.dim,
       (to - from) / kLanes,
       false});
  for (int64_t row = 0; row < block.rows; ++row) {
    const RowView view = view_row(block, row, first_row);
    float* scores = block.scores + row * kTileRows;
    const float largest = finish_scores(p, view, from, to, scores, block.weight + row);
    weigh_row(block, row, largest, from, to);
  }
  multiply(
      {block.scores + begin,
       kTileRows,
       block.v_tile + begin * block.value_row,
       block.value_row,
       kLanes,
       block.values,
       block.value_row,
       block.rows,
       end - begin,
       (p.v.dim + kLanes - 1) / kLanes,
       true});
}

// Outputs, or the partial results of this chunk.
void finish_block(const Block& block) {
  const AttentionProblem& p = block.p;
  for (int64_t row = 0; row < block.rows; ++row) {
    const float* values = block.values + row * block.value_row;
    const int64_t h = block.head(row);
    if (block.item.partials != nullptr) {
      const int64_t index = row / p.group() * p.heads + h;
      float* to = block.item.partials + index * PartialLayout::floats(p.v.dim);
      to[PartialLayout::kLargest] = block.largest[row];
      to[PartialLayout::kWeight] = block.weight[row];
      __builtin_memcpy(
          to + PartialLayout::kValues, values, static_cast<size_t>(p.v.dim) * sizeof(float));
      continue;
    }
    float factor = 1.0F;
    float weight = block.weight[row];
    if (p.sinks != nullptr) {
      const float most = HWY_MAX(block.largest[row], p.sinks[h]);
      factor = __builtin_expf(block.largest[row] - most);
      weight = weight * factor + __builtin_expf(p.sinks[h] - most);
    }
    const float scale = weight == 0.0F ? 0.0F : factor / weight;
    float* out = p.out + block.token(row) * p.out_token + h * p.out_head;
    for (int64_t d = 0; d < p.v.dim; ++d) {
      out[d] = values[d] * scale;
    }
  }
}

bool attend(const AttentionProblem& p, const AttentionItem& item, int64_t g, float* scratch) {
  Block block = make_block(p, item, g, scratch);
  const int32_t* pages = p.page_table + item.sequence * p.page_table_pitch;
  for (int64_t row = item.row_begin; row < item.row_end;) {
    const int64_t page = pages[row / kTileRows];
    if (page < 0 || page >= p.k.pages || page >= p.v.pages) {
      return false;
    }
    const int64_t first_row = row / kTileRows * kTileRows;
    const int64_t end = HWY_MIN(item.row_end, first_row + kTileRows);
    attend_page(
        block, p.k.head(page, g), p.v.head(page, g), first_row, row - first_row, end - first_row);
    row = end;
  }
  finish_block(block);
  return true;
}

AttentionFunctions pages_functions() {
  return {&block_floats, &attend};
}

#else

AttentionFunctions pages_functions() {
  return {};
}

#endif  // PAVO_CPU_HAVE_SIMD

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pavo::cpu {

HWY_EXPORT(pages_functions);

AttentionFunctions attention_pages_functions() {
  return HWY_DYNAMIC_DISPATCH(pages_functions)();
}

}  // namespace pavo::cpu
#endif
