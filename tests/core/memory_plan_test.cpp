#include "core/memory_plan.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

namespace pavo {
namespace {

bool lifetimes_touch(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

void expect_no_overlap(std::span<const Lifetime> lives, const MemoryPlan& plan) {
  ASSERT_EQ(plan.offsets.size(), lives.size());
  for (size_t a = 0; a < lives.size(); ++a) {
    EXPECT_LE(plan.offsets[a] + lives[a].size_bytes, plan.total_bytes);
    EXPECT_EQ(plan.offsets[a] % 256, 0);
    for (size_t b = a + 1; b < lives.size(); ++b) {
      if (!lifetimes_touch(lives[a], lives[b])) {
        continue;
      }
      const bool apart = plan.offsets[a] + lives[a].size_bytes <= plan.offsets[b] ||
                         plan.offsets[b] + lives[b].size_bytes <= plan.offsets[a];
      EXPECT_TRUE(apart) << a << " and " << b << " share bytes while both live";
    }
  }
}

TEST(MemoryPlan, EmptyGraphNeedsNothing) {
  EXPECT_EQ(plan_memory({}).total_bytes, 0);
}

TEST(MemoryPlan, ChainReusesMemory) {
  // a -> b -> c -> d: only two are ever live together.
  std::vector<Lifetime> lives;
  for (int32_t i = 0; i < 10; ++i) {
    lives.push_back({1024, i, i + 1});
  }
  const MemoryPlan plan = plan_memory(lives);
  expect_no_overlap(lives, plan);
  EXPECT_EQ(plan.total_bytes, 2048);
}

TEST(MemoryPlan, RandomLifetimesNeverOverlapAndStayNearTheBound) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> lives;
    const int count = static_cast<int>(random() % 40);
    for (int i = 0; i < count; ++i) {
      const auto first = static_cast<int32_t>(random() % 30);
      const auto last = first + static_cast<int32_t>(random() % 8);
      lives.push_back({static_cast<int64_t>(random() % 5000), first, last});
    }
    const MemoryPlan plan = plan_memory(lives);
    expect_no_overlap(lives, plan);
    int64_t sum = 0;
    for (const Lifetime& life : lives) {
      sum += (life.size_bytes + 255) / 256 * 256;
    }
    EXPECT_LE(plan.total_bytes, sum);
  }
}

}  // namespace
}  // namespace pavo
