#include "llm/kv_cache.h"

#include <set>

#include <gtest/gtest.h>

namespace pavo::llm {
namespace {

TEST(KvCache, RowsOfASequenceHaveSlotsOfTheirOwn) {
  KvCache cache(8, 256);
  const SequenceId a = cache.create();
  const SequenceId b = cache.create();
  ASSERT_TRUE(cache.reserve(a, 100).ok());
  cache.commit(a, 100);
  ASSERT_TRUE(cache.reserve(b, 70).ok());
  cache.commit(b, 70);
  std::set<int32_t> slots;
  for (int64_t row = 0; row < 100; ++row) {
    slots.insert(cache.slot(a, row));
  }
  for (int64_t row = 0; row < 70; ++row) {
    slots.insert(cache.slot(b, row));
  }
  EXPECT_EQ(slots.size(), 170u);
  EXPECT_EQ(cache.free_pages(), 4);
}

TEST(KvCache, FailedReservationChangesNothing) {
  KvCache cache(2, 1000);
  const SequenceId a = cache.create();
  ASSERT_TRUE(cache.reserve(a, 64).ok());
  cache.commit(a, 64);
  const Status full = cache.reserve(a, 65);
  EXPECT_EQ(full.code(), Code::kOutOfMemory);
  EXPECT_EQ(cache.length(a), 64);
  EXPECT_EQ(cache.free_pages(), 1);
  EXPECT_TRUE(cache.reserve(a, 64).ok());
}

TEST(KvCache, ContextIsALimit) {
  KvCache cache(100, 10);
  const SequenceId a = cache.create();
  EXPECT_EQ(cache.reserve(a, 11).code(), Code::kInvalidArgument);
  ASSERT_TRUE(cache.reserve(a, 10).ok());
  cache.commit(a, 10);
  EXPECT_EQ(cache.reserve(a, 1).code(), Code::kInvalidArgument);
}

TEST(KvCache, TruncateAndReleaseGivePagesBack) {
  KvCache cache(4, 256);
  const SequenceId a = cache.create();
  ASSERT_TRUE(cache.reserve(a, 200).ok());
  cache.commit(a, 200);
  EXPECT_EQ(cache.free_pages(), 0);
  cache.truncate(a, 64);
  EXPECT_EQ(cache.length(a), 64);
  EXPECT_EQ(cache.free_pages(), 3);
  cache.release(a);
  EXPECT_EQ(cache.free_pages(), 4);
  EXPECT_FALSE(cache.contains(a));
}

}  // namespace
}  // namespace pavo::llm
