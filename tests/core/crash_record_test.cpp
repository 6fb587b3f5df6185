// A plugin that takes the program down: named at the next start, tried again, skipped after the
// second time. The program is a forked copy of this test.
#include "core/crash_record.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/registry.h"
#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

RegistryOptions options_for(const test::TempDir& dir) {
  RegistryOptions options;
  options.paths = {};
  options.paths.command_line = {dir.path()};
  options.cache_folder = dir.path() / "cache";
  return options;
}

// Loads the plugin in another process and returns how that ended, as waitpid says it.
int load_elsewhere(const RegistryOptions& options, const std::string& id) {
  const pid_t child = ::fork();
  if (child == 0) {
    const bool ok = Registry::discover(options).load(id).ok();
    ::_exit(ok ? 0 : 1);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}

TEST(CrashRecord, SkipsAPluginAfterItKilledTheProgramTwiceWhileLoading) {
  const test::TempDir dir;
  dir.add_fake("TrapInHost");
  const RegistryOptions options = options_for(dir);
  const auto entry = [&] { return Registry::discover(options).report().plugins.at(0); };

  EXPECT_EQ(entry().state, PluginState::kReady) << "the probe finds nothing";
  ASSERT_TRUE(WIFSIGNALED(load_elsewhere(options, "fake-trapinhost")));

  const PluginEntry suspect = entry();
  EXPECT_EQ(suspect.state, PluginState::kReady);
  ASSERT_TRUE(suspect.probe.has_value());
  EXPECT_FALSE(suspect.probe->cached) << "it must be tried anew";
  EXPECT_THAT(
      suspect.warnings,
      testing::ElementsAre(HasSubstr("the program ended while loading it; it is tried again")));

  ASSERT_TRUE(WIFSIGNALED(load_elsewhere(options, "fake-trapinhost")));
  const PluginEntry skipped = entry();
  EXPECT_EQ(skipped.state, PluginState::kRejected);
  EXPECT_THAT(skipped.reason, HasSubstr("and so it did before; skipped"));
  EXPECT_EQ(WEXITSTATUS(load_elsewhere(options, "fake-trapinhost")), 1) << "not loaded any more";

  // What the message tells to do.
  const size_t at = skipped.reason.find("run: rm ");
  ASSERT_NE(at, std::string::npos);
  ASSERT_EQ(std::system(skipped.reason.substr(at + 5).c_str()), 0);
  EXPECT_EQ(entry().state, PluginState::kReady);
}

TEST(CrashRecord, ForgetsLoadFailuresOnceLoadingWorks) {
  const test::TempDir dir;
  const fs::path plugin = dir.add_fake("good");
  const RegistryOptions options = options_for(dir);
  const auto facts = read_plugin_file(plugin);
  ASSERT_TRUE(facts.ok());
  const std::string key = CrashRecords::key_of(plugin, facts->elf);
  const CrashRecords records(options.cache_folder);
  fs::create_directories(options.cache_folder / "crashes");
  std::ofstream(options.cache_folder / "crashes" / (key + ".1-1-1.loading")) << "";
  EXPECT_EQ(records.find(key).strikes, 1);
  EXPECT_EQ(load_elsewhere(options, "fake-good"), 0);
  EXPECT_EQ(records.find(key).strikes, 0);
}

TEST(CrashRecord, CountsAMarkerOnlyWhenItsProcessIsGone) {
  const test::TempDir dir;
  const fs::path plugin = dir.add_fake("HangInHost");
  const RegistryOptions options = options_for(dir);
  const auto facts = read_plugin_file(plugin);
  ASSERT_TRUE(facts.ok());
  const std::string key = CrashRecords::key_of(plugin, facts->elf);
  const CrashRecords records(options.cache_folder);
  const pid_t child = ::fork();
  if (child == 0) {
    static_cast<void>(load_plugin(plugin, *facts, options.cache_folder).ok());
    ::_exit(0);
  }
  const fs::path folder = options.cache_folder / "crashes";
  bool marked = false;
  for (int i = 0; i < 500 && !marked; ++i) {
    ::usleep(10000);
    std::error_code error;
    for (const auto& file : fs::directory_iterator(folder, error)) {
      marked |= file.path().extension() == ".loading";
    }
  }
  EXPECT_TRUE(marked);
  EXPECT_EQ(records.find(key).strikes, 0) << "another program is just loading it";
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_EQ(records.find(key).strikes, 1);
  records.clear(key);
  EXPECT_EQ(records.find(key).strikes, 0);
}

TEST(CrashRecord, AReplacedFileStartsAnew) {
  ElfFacts first;
  first.build_id = "01";
  ElfFacts second;
  second.build_id = "02";
  EXPECT_NE(CrashRecords::key_of("/p.so", first), CrashRecords::key_of("/p.so", second));
  EXPECT_NE(CrashRecords::key_of("/p.so", first), CrashRecords::key_of("/q/p.so", first));
}

TEST(CrashRecord, LivesWithoutAFolder) {
  const CrashRecords none("");
  const LoadMarker marker(none, "key");
  EXPECT_EQ(none.find("key").strikes, 0);
  EXPECT_TRUE(none.crash_file("key").empty());
  const test::TempDir dir;
  const CrashRecords blocked(dir.write("file", ""));
  const LoadMarker other(blocked, "key");
  EXPECT_EQ(blocked.find("key").strikes, 0);
  EXPECT_TRUE(blocked.crash_file("key").empty());
}

}  // namespace
}  // namespace pavo
