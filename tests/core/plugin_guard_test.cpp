// Crashes and hangs of a plugin at run time, in a forked copy of this test.
#include "core/plugin_guard.h"

#include <csignal>
#include <cstdlib>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/crash_record.h"
#include "core/plugin_table.h"
#include "core/registry.h"
#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

using testing::ExitedWithCode;
using testing::KilledBySignal;

// A plugin, loaded, with its one device opened.
class Opened {
 public:
  Opened(const std::string& fake, const std::filesystem::path& cache_folder) {
    const auto path = test::fake(fake);
    const auto facts = read_plugin_file(path);
    const auto plugin = load_plugin(path, *facts, cache_folder);
    api = (*plugin)->api;
    const pavo_values none = {sizeof none, 0, nullptr};
    api->plugin_create(&none, &instance_, &error);
    const std::string id = facts->note.id + "-0";
    const pavo_string name = {id.data(), id.size()};
    api->device_open(instance_, &name, &device, &error);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() {
    api->device_close(device);
    api->plugin_destroy(instance_);
  }

  void self_test() {
    const PluginScope scope(api, "device_self_test");
    api->device_self_test(device, &error);
  }
  void memory() {
    const PluginScope scope(api, "device_memory");
    pavo_memory_info info = {};
    info.struct_size = sizeof info;
    api->device_memory(device, &info, &error);
  }

  const pavo_plugin_api* api = nullptr;
  pavo_device* device = nullptr;
  pavo_error error = make_error();

 private:
  pavo_plugin* instance_ = nullptr;
};

CrashHistory history(const std::string& fake, const test::TempDir& dir) {
  const auto path = test::fake(fake);
  return CrashRecords(dir.path()).find(CrashRecords::key_of(path, read_plugin_file(path)->elf));
}

class PluginGuardDeathTest : public testing::Test {
 protected:
  // The process is forked as it is, so that both sides see one folder.
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "fast"); }
  test::TempDir dir_;
};

TEST_F(PluginGuardDeathTest, WritesDownACrashInAPluginsOwnCode) {
  EXPECT_EXIT(
      {
        watch_crashes();
        Opened("TrapInMemory", dir_.path()).memory();
      },
      KilledBySignal(SIGILL),
      "plugin fake-trapinmemory crashed with SIGILL in device_memory; the next start tries it");
  EXPECT_EQ(history("TrapInMemory", dir_).strikes, 1);
  EXPECT_EQ(history("TrapInMemory", dir_).last, "crashed with SIGILL in device_memory");
}

TEST_F(PluginGuardDeathTest, WritesDownACrashInALibraryThatThePluginCalled) {
  EXPECT_EXIT(
      {
        watch_crashes();
        Opened("AbortInSelfTest", dir_.path()).self_test();
      },
      KilledBySignal(SIGABRT),
      "plugin fake-abortinselftest crashed with SIGABRT in device_self_test");
  EXPECT_EQ(history("AbortInSelfTest", dir_).last, "crashed with SIGABRT in device_self_test");
}

TEST_F(PluginGuardDeathTest, BlamesNoPluginForOurOwnCrash) {
  EXPECT_EXIT(
      {
        watch_crashes();
        Opened("good", dir_.path()).self_test();
        std::abort();
      },
      KilledBySignal(SIGABRT),
      "^$");
  EXPECT_EQ(history("good", dir_).strikes, 0);
}

TEST_F(PluginGuardDeathTest, EndsAHang) {
  EXPECT_EXIT(
      {
        watch_hangs(std::chrono::milliseconds(300));
        Opened("HangInSelfTest", dir_.path()).self_test();
      },
      ExitedWithCode(EXIT_FAILURE),
      "plugin fake-hanginselftest did not come back within 300 ms from device_self_test");
  EXPECT_EQ(history("HangInSelfTest", dir_).strikes, 1);
}

TEST_F(PluginGuardDeathTest, DoesNotMistakeManyShortCallsForAHang) {
  EXPECT_EXIT(
      {
        watch_hangs(std::chrono::milliseconds(200));
        Opened plugin("good", dir_.path());
        for (int i = 0; i < 50; ++i) {
          plugin.self_test();
          std::this_thread::sleep_for(std::chrono::milliseconds(10));
        }
        std::_Exit(7);
      },
      ExitedWithCode(7),
      "");
}

TEST_F(PluginGuardDeathTest, ForgivesAPluginThatWasUsedToAGoodEnd) {
  const auto path = test::fake("good");
  const CrashRecords records(dir_.path());
  const std::string key = CrashRecords::key_of(path, read_plugin_file(path)->elf);
  dir_.write("crashes/" + key + ".1-1-1.crash", "crashed with SIGSEGV in submit");
  EXPECT_EQ(records.find(key).strikes, 1);
  EXPECT_EXIT(
      {
        Opened("good", dir_.path()).self_test();
        std::exit(0);
      },
      ExitedWithCode(0),
      "");
  EXPECT_EQ(records.find(key).strikes, 1) << "nothing was submitted to it";
  EXPECT_EXIT(
      {
        { const PluginScope scope(Opened("good", dir_.path()).api, "submit"); }
        std::exit(0);
      },
      ExitedWithCode(0),
      "");
  EXPECT_EQ(records.find(key).strikes, 0);
}

}  // namespace
}  // namespace pavo
