#include "core/registry.h"

#include <string>

#include <gtest/gtest.h>

#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

using test::TempDir;

RegistryOptions options_for(const TempDir& dir) {
  RegistryOptions options;
  options.paths = {};
  options.paths.command_line = {dir.path()};
  return options;
}

const PluginEntry& entry_of(const RegistryReport& report, const std::string& name) {
  for (const PluginEntry& entry : report.plugins) {
    if (entry.path.stem() == name) {
      return entry;
    }
  }
  ADD_FAILURE() << "no entry for " << name;
  static const PluginEntry kNone;
  return kNone;
}

TEST(Registry, FindsAndLoadsAPlugin) {
  const TempDir dir;
  dir.add_fake("good");
  const Registry registry = Registry::discover(options_for(dir));
  ASSERT_EQ(registry.report().plugins.size(), 1u);
  EXPECT_EQ(registry.report().plugins[0].state, PluginState::kReady);
  const auto plugin = registry.load("fake-good");
  ASSERT_TRUE(plugin.ok()) << plugin.status().message();
  EXPECT_EQ((*plugin)->note.id, "fake-good");
}

TEST(Registry, RecordsEveryRejectedFileWithItsReason) {
  const TempDir dir;
  dir.add_fake("good");
  dir.add_fake("old_major");
  dir.add_fake("new_minor");
  dir.add_fake("executable_stack");
  dir.write("text.so", "hello");
  const Registry registry = Registry::discover(options_for(dir));
  const RegistryReport& report = registry.report();
  EXPECT_EQ(report.plugins.size(), 5u);
  EXPECT_EQ(entry_of(report, "good").state, PluginState::kReady);
  EXPECT_EQ(
      entry_of(report, "old_major").reason,
      "talks ABI 99.1 to 99.1, this program 0.1 to 0.1; use matching builds");
  EXPECT_EQ(
      entry_of(report, "new_minor").reason,
      "talks ABI 0.90 to 0.99, this program 0.1 to 0.1; use matching builds");
  EXPECT_NE(
      entry_of(report, "executable_stack").reason.find("executable stack"), std::string::npos);
  EXPECT_EQ(entry_of(report, "text").reason, "not an ELF file");
  const auto plugin = registry.load("fake-old_major");
  ASSERT_FALSE(plugin.ok());
  EXPECT_EQ(plugin.status().code(), Code::kNoBackend);
  EXPECT_NE(plugin.status().message().find("is rejected: talks ABI"), std::string::npos);
}

TEST(Registry, TakesTheFirstOfTwoPluginsWithOneId) {
  const TempDir first;
  const TempDir second;
  first.add_fake("twin");
  second.add_fake("good");
  RegistryOptions options = options_for(first);
  options.paths.command_line.push_back(second.path());
  const Registry registry = Registry::discover(options);
  EXPECT_EQ(entry_of(registry.report(), "twin").state, PluginState::kReady);
  const PluginEntry& other = entry_of(registry.report(), "good");
  EXPECT_EQ(other.state, PluginState::kRejected);
  EXPECT_NE(other.reason.find("plugin fake-good was found before, in"), std::string::npos);
}

TEST(Registry, ObeysAllowAndDeny) {
  const TempDir dir;
  dir.add_fake("good");
  RegistryOptions options = options_for(dir);
  for (const char* name : {"fake-good", "fake*", "other"}) {
    options.allow = {name};
    options.deny = {};
    EXPECT_NE(Registry::discover(options).report().find("fake-good"), nullptr) << name;
    options.allow = {};
    options.deny = {name};
    EXPECT_EQ(Registry::discover(options).report().find("fake-good"), nullptr) << name;
  }
  options.allow = {"cuda"};
  options.deny = {};
  const Registry registry = Registry::discover(options);
  EXPECT_EQ(registry.report().plugins[0].reason, "not among the allowed plugins");
}

TEST(Registry, NamesWhatThereIsInstead) {
  const TempDir dir;
  dir.add_fake("good");
  const auto plugin = Registry::discover(options_for(dir)).load("cuda-sm99");
  ASSERT_FALSE(plugin.ok());
  EXPECT_EQ(plugin.status().code(), Code::kNoBackend);
  EXPECT_NE(
      plugin.status().message().find("no plugin cuda-sm99 was found; there are: fake-good"),
      std::string::npos);
}

}  // namespace
}  // namespace pavo
