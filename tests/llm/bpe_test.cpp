#include "llm/bpe.h"

#include <random>

#include <gtest/gtest.h>

namespace pavo::llm {
namespace {

// The definition, one merge at a time: lowest rank first, leftmost of equals.
std::vector<int32_t> merge_slowly(const MergeTable& table, std::vector<int32_t> tokens) {
  while (true) {
    const MergeTable::Merge* best = nullptr;
    size_t place = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      const MergeTable::Merge* merge = table.find(tokens[i], tokens[i + 1]);
      if (merge != nullptr && (best == nullptr || merge->rank < best->rank)) {
        best = merge;
        place = i;
      }
    }
    if (best == nullptr) {
      return tokens;
    }
    tokens[place] = best->merged;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(Bpe, MergesByRankThenFromTheLeft) {
  MergeTable table(3);
  table.add(1, 1, 5, 2);
  table.add(2, 2, 3, 3);
  table.add(1, 2, 1, 4);
  BpeMerger merger(table);
  std::vector<int32_t> tokens = {1, 1, 1, 1, 1};
  merger.merge(&tokens);
  // (1 1) 1 1 1, then nothing is cheaper than (1 1) again at the second pair, then 2 2 -> 3.
  EXPECT_EQ(tokens, (std::vector<int32_t>{3, 1}));
  tokens = {1, 1, 2};
  merger.merge(&tokens);
  EXPECT_EQ(tokens, (std::vector<int32_t>{1, 4}));
  tokens.clear();
  merger.merge(&tokens);
  EXPECT_TRUE(tokens.empty());
}

TEST(Bpe, KeepsTheFirstOfEqualPairs) {
  MergeTable table(2);
  table.add(0, 0, 0, 7);
  table.add(0, 0, 1, 8);
  EXPECT_EQ(table.find(0, 0)->merged, 7);
  EXPECT_EQ(table.find(0, 1), nullptr);
  EXPECT_EQ(MergeTable().find(0, 0), nullptr);
}

TEST(Bpe, EqualsTheDefinitionOnRandomTables) {
  std::mt19937 random(20260101);
  for (int round = 0; round < 300; ++round) {
    const auto pick = [&](int32_t limit) { return static_cast<int32_t>(random() % limit); };
    MergeTable table(60);
    for (int32_t rank = 0; rank < 60; ++rank) {
      table.add(pick(12), pick(12), pick(1000), 4 + pick(8));
    }
    std::vector<int32_t> tokens(pick(40));
    for (int32_t& token : tokens) {
      token = pick(4);
    }
    const std::vector<int32_t> expected = merge_slowly(table, tokens);
    BpeMerger merger(table);
    merger.merge(&tokens);
    ASSERT_EQ(tokens, expected) << "round " << round;
  }
}

}  // namespace
}  // namespace pavo::llm
