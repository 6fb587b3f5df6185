// The index arithmetic and the online softmax of attention, on the CPU.
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/ops/attention/problem.cuh"
#include "tests/kernels/ops/emulator/emulator.h"

namespace pavo::cuda::testing {
namespace {

AttentionProblem problem_of(const std::vector<int32_t>& seq_rows, int32_t tokens, int32_t group) {
  AttentionProblem problem{};
  problem.seq_rows = seq_rows.data();
  problem.sequences = static_cast<int32_t>(seq_rows.size()) - 1;
  problem.tokens = tokens;
  problem.group = group;
  return problem;
}

TEST(QueryTiles, CoverEveryVectorOnceWithinTheBound) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    const auto draw = [&](int32_t least, int32_t most) {
      return std::uniform_int_distribution<int32_t>(least, most)(random);
    };
    const int32_t group = draw(1, 9), size = 1 << draw(2, 6);
    std::vector<int32_t> seq_rows = {0};
    for (int32_t s = draw(1, 6); s > 0; --s) {
      seq_rows.push_back(seq_rows.back() + draw(0, 40));
    }
    const int32_t tokens = seq_rows.back() + draw(0, 3);
    const AttentionProblem problem = problem_of(seq_rows, tokens, group);
    std::vector<int> seen(static_cast<size_t>(tokens * group));
    QueryTile tile{};
    int64_t used = 0;
    while (find_query_tile(problem, used, size, &tile)) {
      ASSERT_GT(tile.count, 0);
      ASSERT_LE(tile.count, size);
      ASSERT_EQ(tile.first_token, seq_rows[static_cast<size_t>(tile.sequence)]);
      for (int32_t i = 0; i < tile.count; ++i) {
        ++seen[static_cast<size_t>(tile.first_token * group + tile.first + i)];
      }
      ++used;
    }
    for (int32_t v = 0; v < tokens * group; ++v) {
      ASSERT_EQ(seen[static_cast<size_t>(v)], v < seq_rows.back() * group ? 1 : 0);
    }
    EXPECT_LE(used, query_tiles(tokens, problem.sequences, group, size));
  }
}

TEST(QueryTiles, BoundIsExactForOneTokenASequence) {
  EXPECT_EQ(query_tiles(8, 8, 4, 4), 8);
  EXPECT_EQ(query_tiles(8, 8, 8, 4), 16);
  EXPECT_EQ(query_tiles(1, 1, 5, 4), 2);
  EXPECT_EQ(query_tiles(0, 3, 5, 4), 0);
}

TEST(QueryTiles, BrokenSequencesStayWithinTheTokens) {
  const std::vector<int32_t> broken = {-5, 3, 2, 1 << 30, 4};
  const AttentionProblem problem = problem_of(broken, 6, 2);
  for (int32_t s = 0; s < problem.sequences; ++s) {
    const TokenRange range = tokens_of(problem, s);
    EXPECT_LE(range.begin, range.end);
    EXPECT_GE(range.begin, 0);
    EXPECT_TRUE(range.begin == range.end || range.end <= problem.tokens);
  }
}

TEST(PageShares, CoverThePagesOfTheRowsOnce) {
  for (const int32_t splits : {1, 2, 3, 7, 64}) {
    for (const int32_t first : {0, 63, 64, 200}) {
      for (const int32_t last : {first, first + 1, first + 64, first + 1000}) {
        std::vector<int> seen(64);
        for (int32_t split = 0; split < splits; ++split) {
          const PageRange range = pages_of_split(first, last, split, splits);
          for (int32_t p = range.begin; p < range.end; ++p) {
            ++seen[static_cast<size_t>(p)];
          }
        }
        for (int32_t p = 0; p < 64; ++p) {
          const bool holds = last > first && p >= first / 64 && p <= (last - 1) / 64;
          ASSERT_EQ(seen[static_cast<size_t>(p)], holds ? 1 : 0)
              << "page " << p << " of rows " << first << ".." << last << ", splits " << splits;
        }
      }
    }
  }
}

TEST(VisibleRows, SurviveEveryRowNumber) {
  AttentionProblem problem{};
  const int32_t rows[] = {INT32_MIN, -1, 0, 9, 10, INT32_MAX};
  problem.rows = rows;
  for (const int32_t causal : {0, 1}) {
    for (const int32_t window : {0, 1, 4, INT32_MAX}) {
      problem.causal = causal;
      problem.window = window;
      for (int64_t t = 0; t < 6; ++t) {
        const VisibleRows visible = visible_rows(problem, t, 10);
        for (int64_t j = 0; j < 10; ++j) {
          const bool seen =
              (causal == 0 || j <= rows[t]) && (window == 0 || j > int64_t{rows[t]} - window);
          ASSERT_EQ(j >= visible.first && j < visible.last, seen)
              << "row " << j << " for " << rows[t] << ", window " << window;
        }
      }
    }
  }
}

TEST(OnlineSoftmax, NoRowAndNoWeightGiveNoNan) {
  SoftmaxState state;
  EXPECT_EQ(softmax_raise(state, -INFINITY), 1.0f);
  EXPECT_EQ(softmax_weight(-INFINITY, state.largest), 0.0f);
  EXPECT_EQ(softmax_factor(state, nullptr), 0.0f);
  const float sink = 3.0f;
  EXPECT_EQ(softmax_factor(state, &sink), 0.0f);
  const float no_sink = -INFINITY;
  EXPECT_EQ(softmax_factor(state, &no_sink), 0.0f);
  EXPECT_EQ(softmax_raise(state, 2.0f), 0.0f);
  state.sum += 1.0f;
  EXPECT_EQ(softmax_raise(state, -INFINITY), 1.0f);
  EXPECT_FLOAT_EQ(softmax_factor(state, &no_sink), 1.0f);
  EXPECT_FLOAT_EQ(softmax_factor(state, &sink), std::exp(-1.0f) / (std::exp(-1.0f) + 1.0f));
}

}  // namespace
}  // namespace pavo::cuda::testing
