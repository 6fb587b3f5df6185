#include "core/log.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace pavo {
namespace {

class LogTest : public testing::Test {
 protected:
  void TearDown() override {
    set_log_sink(nullptr);
    set_log_level(LogLevel::kWarn);
  }
};

TEST_F(LogTest, SinkGetsMessagesOfAtLeastTheLevel) {
  std::vector<std::pair<LogLevel, std::string>> lines;
  set_log_sink(
      [&](LogLevel level, std::string_view text) { lines.emplace_back(level, std::string(text)); });
  set_log_level(LogLevel::kInfo);
  EXPECT_EQ(log_level(), LogLevel::kInfo);
  log_debug("too low");
  log_info("100% {} of it");
  log_error("bad");
  set_log_level(LogLevel::kOff);
  log_error("silenced");
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], std::make_pair(LogLevel::kInfo, std::string("100% {} of it")));
  EXPECT_EQ(lines[1], std::make_pair(LogLevel::kError, std::string("bad")));
}

TEST_F(LogTest, KeepsWhatUpsetsATerminalOut) {
  std::string line;
  set_log_sink([&](LogLevel, std::string_view text) { line = text; });
  log_warn("folder \x1b[2J\n\xff: caf\xc3\xa9");
  EXPECT_EQ(line, "folder ?[2J ?: caf\xc3\xa9");
}

TEST_F(LogTest, WritesToStandardErrorOnly) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  log_warn("look out");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: look out\n");
}

}  // namespace
}  // namespace pavo
