#include "core/plugin_loader.h"

#include <string>

#include <gtest/gtest.h>

#include "core/log.h"
#include "core/plugin_table.h"
#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

Result<const LoadedPlugin*> load(const std::string& name) {
  const auto path = test::fake(name);
  Result<PluginFileFacts> facts = read_plugin_file(path);
  return facts.ok() ? load_plugin(path, *facts) : facts.status();
}

std::string fault(const std::string& name) {
  const auto plugin = load(name);
  return plugin.ok() ? "loaded" : plugin.status().message();
}

TEST(PluginLoader, LoadsOnceAndPassesTheLogOn) {
  std::string seen;
  set_log_level(LogLevel::kDebug);
  set_log_sink([&](LogLevel, std::string_view text) { seen += text; });
  const auto plugin = load("good");
  set_log_sink(nullptr);
  set_log_level(LogLevel::kWarn);
  ASSERT_TRUE(plugin.ok()) << plugin.status().message();
  EXPECT_EQ(seen, "fake-good: hello");
  EXPECT_EQ((*plugin)->note.id, "fake-good");
  EXPECT_EQ((*plugin)->api->abi_minor, PAVO_ABI_MINOR);
  const auto again = load("good");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*plugin, *again);
}

TEST(PluginLoader, NamesWhatIsWrongWithATable) {
  EXPECT_EQ(fault("NullFunction"), "the function submit is NULL, but not optional");
  EXPECT_EQ(fault("NullTable"), "the table is NULL although pavo_plugin_query succeeded");
  EXPECT_EQ(
      fault("OtherId"), "the table's id is \"somebody-else\", the note's is \"fake-otherid\"");
  EXPECT_NE(fault("ShortTable").find("the table has 64 bytes, ABI 0.1 needs"), std::string::npos);
  EXPECT_NE(fault("LongTable").find("of the table is set, but ABI 0.1 ends at"), std::string::npos);
  EXPECT_NE(
      fault("LieMajor").find("the table says ABI 1.1, this program talks 0.1"), std::string::npos);
  EXPECT_NE(
      fault("RefuseVersion").find("pavo_plugin_query: the host talks ABI 1."), std::string::npos);
}

TEST(PluginLoader, StopsExceptionsAtTheBoundary) {
  EXPECT_NE(fault("ThrowInQuery").find("pavo_plugin_query threw an exception"), std::string::npos);
}

TEST(PluginLoader, KeepsWhatAPluginPrintsOutOfStandardOutput) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  const auto plugin = load("PrintInConstructor");
  const std::string printed = testing::internal::GetCapturedStdout();
  EXPECT_TRUE(plugin.ok());
  EXPECT_EQ(printed, "");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a plugin was here\n");
}

TEST(PluginTable, RefusesRelativePaths) {
  const auto query = open_plugin_library("good.so");
  ASSERT_FALSE(query.ok());
  EXPECT_EQ(query.status().message(), "expected an absolute path, got good.so");
}

TEST(PluginTable, GivesTheLinkersMessage) {
  const test::TempDir dir;
  const auto query = open_plugin_library(dir.write("x.so", "#!/bin/sh\n"));
  ASSERT_FALSE(query.ok());
  EXPECT_NE(query.status().message().find("file too short"), std::string::npos)
      << query.status().message();
}

}  // namespace
}  // namespace pavo
