#include "core/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pavo {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Text, SplitDropsEmptyPartsAndOuterSpaces) {
  EXPECT_THAT(split("a, b c ,,d,", ','), ElementsAre("a", "b c", "d"));
  EXPECT_THAT(split("", ','), IsEmpty());
  EXPECT_THAT(split(" , ", ','), IsEmpty());
  EXPECT_THAT(split("one", ','), ElementsAre("one"));
}

TEST(Text, NearestNameOnlyIfNear) {
  EXPECT_EQ(nearest_name("devcies", {"backend", "devices"}), "devices");
  EXPECT_EQ(nearest_name("thread", {"threads", "place"}), "threads");
  EXPECT_EQ(nearest_name("x", {"threads", "place"}), "");
  EXPECT_EQ(nearest_name("", {"a", "ab"}), "");
}

TEST(Text, NumbersTakeTheWholeText) {
  EXPECT_EQ(parse_int("-7"), -7);
  EXPECT_FALSE(parse_int("7 "));
  EXPECT_FALSE(parse_int(""));
  EXPECT_EQ(parse_double("0.5"), 0.5);
  EXPECT_FALSE(parse_double("0.5f"));
}

}  // namespace
}  // namespace pavo
