#include "core/host_api.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pavo {
namespace {

TEST(HostApi, CountsMemoryAndAligns) {
  HostApi host("demo", nullptr);
  const pavo_host_api* table = host.table();
  EXPECT_EQ(table->struct_size, sizeof(pavo_host_api));
  void* small = table->alloc(table->context, 100, 1);
  void* large = table->alloc(table->context, 5000, 4096);
  ASSERT_NE(small, nullptr);
  ASSERT_NE(large, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(large) % 4096, 0u);
  EXPECT_EQ(host.used_bytes(), 5100);
  table->free(table->context, small, 100);
  table->free(table->context, large, 5000);
  table->free(table->context, nullptr, 0);
  EXPECT_EQ(host.used_bytes(), 0);
  EXPECT_EQ(host.block_count(), 0);
  EXPECT_EQ(host.peak_bytes(), 5100);
}

TEST(HostApi, RefusesWhatCannotBeAllocated) {
  HostApi host("demo", nullptr);
  const pavo_host_api* table = host.table();
  EXPECT_EQ(table->alloc(table->context, 8, 0), nullptr);
  EXPECT_EQ(table->alloc(table->context, 8, 24), nullptr);
  EXPECT_EQ(table->alloc(table->context, UINT64_MAX, 8), nullptr);
  EXPECT_EQ(table->alloc(table->context, uint64_t{1} << 62, 8), nullptr);
  EXPECT_EQ(host.block_count(), 0);
}

TEST(HostApi, FailsFromTheNthAllocation) {
  HostApi host("demo", nullptr);
  const pavo_host_api* table = host.table();
  host.fail_from_allocation(2);
  void* first = table->alloc(table->context, 8, 8);
  EXPECT_NE(first, nullptr);
  EXPECT_EQ(table->alloc(table->context, 8, 8), nullptr);
  EXPECT_EQ(table->alloc(table->context, 8, 8), nullptr);
  host.fail_from_allocation(0);
  void* last = table->alloc(table->context, 8, 8);
  EXPECT_NE(last, nullptr);
  table->free(table->context, first, 8);
  table->free(table->context, last, 8);
}

TEST(HostApi, PutsTheNameBeforeMessagesAndCleansThem) {
  std::vector<std::pair<int32_t, std::string>> lines;
  HostApi host("demo", [&](int32_t level, std::string_view text) {
    lines.emplace_back(level, std::string(text));
  });
  const pavo_host_api* table = host.table();
  const std::string text = "a\x1b[2Jb\n\xff";
  table->log(table->context, 99, text.data(), text.size());
  table->log(table->context, PAVO_LOG_INFO, nullptr, 0);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_EQ(lines[0].first, PAVO_LOG_ERROR);
  EXPECT_EQ(lines[0].second, "demo: a?[2Jb ?");
}

TEST(Printable, KeepsUtf8AndCutsBetweenCharacters) {
  EXPECT_EQ(printable("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(printable("\xc3\xbc\xc3\xbc", 3), "\xc3\xbc");
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80\xc2\x9b"), "??????");
  EXPECT_EQ(printable("\xf0\x9f\xa6\x9a ok"), "\xf0\x9f\xa6\x9a ok");
}

}  // namespace
}  // namespace pavo
