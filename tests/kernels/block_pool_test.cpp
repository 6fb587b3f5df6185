#include "kernels/host/block_pool.h"

#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace pavo::cuda {
namespace {

std::byte* address(uintptr_t value) {
  return reinterpret_cast<std::byte*>(value);
}

TEST(BlockPoolTest, TakesTheSmallestThatFits) {
  BlockPool pool;
  pool.add_slab(address(0x100000), 4096);
  std::byte* first = pool.take(1024);
  std::byte* second = pool.take(512);
  std::byte* third = pool.take(1024);
  ASSERT_NE(third, nullptr);
  pool.give(first);
  EXPECT_EQ(pool.take(512), first) << "1024 free bytes fit better than the 1536 at the end";
  EXPECT_EQ(second, first + 1024);
}

TEST(BlockPoolTest, NeighboursJoinAgain) {
  BlockPool pool;
  pool.add_slab(address(0x100000), 4096);
  std::vector<std::byte*> blocks;
  for (int i = 0; i < 8; ++i) {
    blocks.push_back(pool.take(1));
  }
  EXPECT_EQ(pool.take(1), nullptr);
  EXPECT_EQ(pool.used_bytes(), 4096);
  for (const int i : {1, 3, 2, 0, 7, 5, 6, 4}) {
    pool.give(blocks[static_cast<size_t>(i)]);
  }
  EXPECT_EQ(pool.used_bytes(), 0);
  EXPECT_EQ(pool.take(4096), address(0x100000));
}

// Two slabs that happen to touch are not one block, since they are released one by one.
TEST(BlockPoolTest, SlabsDoNotJoin) {
  BlockPool pool;
  pool.add_slab(address(0x100000), 1024);
  pool.add_slab(address(0x100400), 2048);
  pool.give(pool.take(1024));
  EXPECT_EQ(pool.take(3072), nullptr);
  EXPECT_EQ(pool.remove_free_slab().second, 2048);
  EXPECT_EQ(pool.remove_free_slab().second, 1024);
  EXPECT_EQ(pool.remove_free_slab().first, nullptr);
  EXPECT_EQ(pool.reserved_bytes(), 0);
}

TEST(BlockPoolTest, RandomUseNeverOverlapsAndLosesNothing) {
  const uint32_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  BlockPool pool;
  for (uintptr_t slab = 0; slab < 3; ++slab) {
    pool.add_slab(address(0x1000000 * (slab + 1)), 1 << 20);
  }
  std::map<std::byte*, int64_t> taken;
  int64_t used = 0;
  for (int step = 0; step < 20000; ++step) {
    if (taken.empty() || random() % 2 == 0) {
      const int64_t size = 1 + static_cast<int64_t>(random() % 60000);
      std::byte* block = pool.take(size);
      if (block == nullptr) {
        continue;
      }
      const int64_t rounded = BlockPool::rounded(size);
      const auto next = taken.lower_bound(block);
      ASSERT_TRUE(next == taken.end() || block + rounded <= next->first);
      ASSERT_TRUE(
          next == taken.begin() || std::prev(next)->first + std::prev(next)->second <= block);
      taken.emplace(block, rounded);
      used += rounded;
    } else {
      const auto victim = std::next(taken.begin(), static_cast<long>(random() % taken.size()));
      ASSERT_EQ(pool.give(victim->first), victim->second);
      used -= victim->second;
      taken.erase(victim);
    }
    ASSERT_EQ(pool.used_bytes(), used);
  }
  for (const auto& [block, size] : taken) {
    pool.give(block);
  }
  for (int slab = 0; slab < 3; ++slab) {
    EXPECT_EQ(pool.remove_free_slab().second, 1 << 20);
  }
}

}  // namespace
}  // namespace pavo::cuda
