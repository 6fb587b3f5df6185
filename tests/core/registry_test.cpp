#include "core/registry.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/backends.h"
#include "tests/core/fake_cuda.h"
#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

using namespace std::string_literals;
using test::TempDir;

RegistryOptions options_for(const TempDir& dir) {
  RegistryOptions options;
  options.paths = {};
  options.paths.command_line = {dir.path()};
  options.cache_folder = dir.path() / "cache";
  return options;
}

const PluginEntry& entry_of(const RegistryReport& report, const std::string& name) {
  for (const PluginEntry& entry : report.plugins) {
    if (entry.path.stem() == name) {
      return entry;
    }
  }
  ADD_FAILURE() << "no entry for " << name;
  static const PluginEntry none;
  return none;
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
    options.policy.allow = {name};
    options.policy.deny = {};
    EXPECT_NE(Registry::discover(options).report().find("fake-good"), nullptr) << name;
    options.policy.allow = {};
    options.policy.deny = {name};
    EXPECT_EQ(Registry::discover(options).report().find("fake-good"), nullptr) << name;
  }
  options.policy.allow = {"cuda"};
  options.policy.deny = {};
  const Registry registry = Registry::discover(options);
  EXPECT_EQ(registry.report().plugins[0].reason, "not among the allowed backends (backends.allow)");
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

TEST(Registry, GivesEachCudaDeviceToOnePlugin) {
  const TempDir dir;
  for (const char* name : {"good", "sm60", "sm61", "sm70"}) {
    dir.add_fake(name);
  }
  const test::FakeCuda cuda(test::kMixedHost);
  RegistryOptions options = options_for(dir);
  options.cuda_driver = test::FakeCuda::library();
  const Registry registry = Registry::discover(options);
  const RegistryReport& report = registry.report();
  EXPECT_TRUE(report.devices_read);
  EXPECT_EQ(report.grid.size(), 9u);
  for (const char* chip : {"60", "61", "70"}) {
    const PluginEntry* entry = report.find(std::string("cuda-sm") + chip);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->state, PluginState::kReady);
    EXPECT_EQ(entry->devices, std::vector<std::string>{test::fake_uuid(chip)});
    EXPECT_TRUE(report.may_use(*entry, test::fake_uuid(chip)));
    EXPECT_FALSE(report.may_use(*entry, test::fake_uuid("99")));
  }
  EXPECT_TRUE(report.may_use(*report.find("fake-good"), "fake-good-0"));
}

std::vector<std::string> opened(const RegistryOptions& options, const std::string& backend) {
  RegistryOptions asked = options;
  asked.backend = backend;
  BackendRequest request;
  request.backend = backend;
  auto devices = open_devices(Registry::discover(asked), request);
  if (!devices.ok()) {
    return {devices.status().message()};
  }
  std::vector<std::string> names;
  for (const auto& device : *devices) {
    names.push_back(device->plugin_id() + " " + device->id());
  }
  return names;
}

// Each plugin lists all three cards, but a card has one owner; a named plugin takes what it can.
TEST(Registry, OpensEachDeviceOnceThroughItsOwner) {
  const TempDir dir;
  for (const char* name : {"sm60", "sm61", "sm70"}) {
    dir.add_fake(name);
  }
  const test::FakeCuda cuda(test::kMixedHost);
  RegistryOptions options = options_for(dir);
  options.cuda_driver = test::FakeCuda::library();
  EXPECT_THAT(
      opened(options, "auto"),
      testing::UnorderedElementsAre(
          "cuda-sm60 " + test::fake_uuid("60"),
          "cuda-sm61 " + test::fake_uuid("61"),
          "cuda-sm70 " + test::fake_uuid("70")));
  EXPECT_THAT(
      opened(options, "cuda-sm61"),
      testing::UnorderedElementsAre(
          "cuda-sm61 " + test::fake_uuid("61"), "cuda-sm61 " + test::fake_uuid("70")));
}

// Three cards, a plugin for each, and the wishes of a user.
class Wishes : public testing::Test {
 protected:
  Wishes() {
    for (const char* name : {"sm60", "sm61", "sm70"}) {
      dir_.add_fake(name);
    }
    options_ = options_for(dir_);
    options_.cuda_driver = test::FakeCuda::library();
  }
  std::vector<std::string> open(const std::string& backend = "auto") {
    return opened(options_, backend);
  }

  const TempDir dir_;
  const test::FakeCuda cuda_{test::kMixedHost};
  RegistryOptions options_;
  const std::string on_60_ = "cuda-sm60 " + test::fake_uuid("60");
  const std::string on_61_ = "cuda-sm61 " + test::fake_uuid("61");
  const std::string on_70_ = "cuda-sm70 " + test::fake_uuid("70");
};

TEST_F(Wishes, ABackendIsNamedByPluginArchitectureOrDevice) {
  for (const std::string& name : {std::string("sm_61"), test::fake_uuid("61"), "GPU-61*"s}) {
    EXPECT_THAT(open(name), testing::ElementsAre(on_61_)) << name;
  }
  EXPECT_THAT(
      open("sm_86"),
      testing::ElementsAre(testing::AllOf(
          testing::HasSubstr(
              "backend 'sm_86' cannot serve here: no plugin, architecture or device"),
          testing::HasSubstr("there are: "))));
}

TEST_F(Wishes, RankOrdersTheDevices) {
  options_.policy.rank = {"sm_61", "cuda-sm70"};
  EXPECT_THAT(open(), testing::ElementsAre(on_61_, on_70_, on_60_));
  options_.policy.rank = {test::fake_uuid("70"), "sm_6*"};
  EXPECT_EQ(open().front(), on_70_);
}

// The better code loses to the plugin that the user prefers.
TEST_F(Wishes, RankDecidesWhichPluginServesADevice) {
  options_.policy.rank = {"cuda-sm61"};
  EXPECT_THAT(
      open(), testing::UnorderedElementsAre(on_60_, on_61_, "cuda-sm61 " + test::fake_uuid("70")));
}

TEST_F(Wishes, DenyWinsOverAllow) {
  options_.policy.allow = {"sm_61", "cuda-sm70"};
  EXPECT_THAT(open(), testing::UnorderedElementsAre(on_61_, on_70_));
  options_.policy.deny = {test::fake_uuid("70")};
  EXPECT_THAT(open(), testing::ElementsAre(on_61_));
  options_.policy.deny = {"cuda"};
  EXPECT_THAT(
      open(),
      testing::ElementsAre(testing::HasSubstr("cuda-sm61 is rejected: denied by configuration")));
}

// A card whose own plugin is denied goes to the next that has code for it.
TEST_F(Wishes, TheDevicesOfADeniedPluginGoToTheNext) {
  options_.policy.deny = {"cuda-sm70"};
  EXPECT_THAT(
      open(), testing::UnorderedElementsAre(on_60_, on_61_, "cuda-sm61 " + test::fake_uuid("70")));
}

TEST_F(Wishes, WhatIsRequiredMustServe) {
  options_.policy.require = {"sm_70", "cuda-sm60"};
  EXPECT_EQ(open().size(), 3U);
  options_.policy.deny = {"sm_70"};
  EXPECT_THAT(
      open(),
      testing::ElementsAre(testing::AllOf(
          testing::HasSubstr("required backend 'sm_70' cannot serve here: "),
          testing::HasSubstr("backends.deny has 'sm_70'"),
          testing::HasSubstr("there are: cuda-sm60 on " + test::fake_uuid("60")))));
}

TEST(Registry, OpensNoDeviceThatTheSelfTestFailedOn) {
  const TempDir dir;
  dir.add_fake("sm61_failing");
  const test::FakeCuda cuda(R"({"devices": [{"capability": 61, "uuid": "61"}]})");
  RegistryOptions options = options_for(dir);
  options.cuda_driver = test::FakeCuda::library();
  EXPECT_THAT(
      opened(options, "cuda-sm61-failing"),
      testing::ElementsAre(testing::HasSubstr(
          "backend 'cuda-sm61-failing' cannot serve here: cuda-sm61-failing is idle: "
          "device_self_test")));
}

TEST(Registry, GivesADeviceOfTwoPluginsToTheFirst) {
  const TempDir first;
  const TempDir second;
  first.add_fake("RivalDevice");
  second.add_fake("good");
  RegistryOptions options = options_for(first);
  options.paths.command_line.push_back(second.path());
  const Registry registry = Registry::discover(options);
  const RegistryReport& report = registry.report();
  EXPECT_EQ(entry_of(report, "RivalDevice").devices, std::vector<std::string>{"fake-good-0"});
  const PluginEntry& late = entry_of(report, "good");
  EXPECT_EQ(late.state, PluginState::kIdle);
  EXPECT_EQ(late.reason, "fake-good-0 is served by an earlier plugin");
  EXPECT_FALSE(report.may_use(late, "fake-good-0"));
  EXPECT_THAT(
      report.notices(),
      testing::ElementsAre("plugin fake-good: fake-good-0 is served by an earlier plugin"));
}

TEST(Registry, KeepsCudaPluginsIdleWithoutADevice) {
  const TempDir dir;
  dir.add_fake("sm61");
  RegistryOptions options = options_for(dir);
  options.cuda_driver = "/nowhere/libcuda.so.1";
  const Registry registry = Registry::discover(options);
  const PluginEntry& entry = entry_of(registry.report(), "sm61");
  EXPECT_EQ(entry.state, PluginState::kIdle);
  EXPECT_NE(entry.reason.find("no NVIDIA driver"), std::string::npos);
  EXPECT_TRUE(registry.load("cuda-sm61").ok());
}

TEST(Registry, AsksTheDriverOnlyIfAPluginNeedsIt) {
  const TempDir dir;
  dir.add_fake("good");
  const test::FakeCuda cuda(test::kMixedHost);
  RegistryOptions options = options_for(dir);
  options.cuda_driver = test::FakeCuda::library();
  EXPECT_FALSE(Registry::discover(options).report().devices_read);
  options.always_read_devices = true;
  EXPECT_EQ(Registry::discover(options).report().driver.devices.size(), 3u);
}

// The next best plugin takes a device whose own plugin fails on it; nothing is silent.
TEST(Registry, PassesADeviceOnWhenItsPluginFailsOnIt) {
  for (const char* bad : {"sm61_bad", "sm61_failing"}) {
    const TempDir dir;
    dir.add_fake(bad);
    dir.add_fake("sm60");
    const test::FakeCuda cuda(test::kMixedHost);
    RegistryOptions options = options_for(dir);
    options.cuda_driver = test::FakeCuda::library();
    const Registry registry = Registry::discover(options);
    const RegistryReport& report = registry.report();
    const PluginEntry& failed = entry_of(report, bad);
    EXPECT_EQ(failed.state, PluginState::kIdle);
    EXPECT_THAT(failed.reason, testing::HasSubstr("device_self_test"));
    const PluginEntry& second = entry_of(report, "sm60");
    EXPECT_EQ(second.state, PluginState::kReady);
    EXPECT_THAT(
        second.devices,
        testing::UnorderedElementsAre(
            test::fake_uuid("60"), test::fake_uuid("61"), test::fake_uuid("70")));
    for (const DevicePluginPair& pair : report.grid) {
      EXPECT_EQ(pair.chosen, pair.tested);
    }
  }
}

TEST(Registry, DoesNotProbeExclusiveDevices) {
  const TempDir dir;
  dir.add_fake("sm61_bad");
  const test::FakeCuda cuda(
      R"({"devices": [{"capability": 61, "uuid": "61", "pci": "1", "mode": 3}]})");
  RegistryOptions options = options_for(dir);
  options.cuda_driver = test::FakeCuda::library();
  const Registry registry = Registry::discover(options);
  EXPECT_EQ(registry.report().plugins[0].state, PluginState::kReady);
  ASSERT_EQ(registry.report().grid.size(), 1u);
  EXPECT_FALSE(registry.report().grid[0].tested);
  EXPECT_THAT(
      registry.report().grid[0].text, testing::HasSubstr("not probed, since the device is in"));
}

TEST(Registry, RejectsWhatTheProbeFinds) {
  const TempDir dir;
  for (const char* name :
       {"good",
        "TrapInConstructor",
        "ExitInConstructor",
        "FailCreate",
        "PrintInConstructor",
        "FailSelfTest"}) {
    dir.add_fake(name);
  }
  const Registry registry = Registry::discover(options_for(dir));
  const RegistryReport& report = registry.report();
  EXPECT_EQ(entry_of(report, "good").state, PluginState::kReady);
  EXPECT_EQ(entry_of(report, "good").devices, std::vector<std::string>{"fake-good-0"});
  EXPECT_EQ(entry_of(report, "TrapInConstructor").reason, "crashed with SIGILL while loading");
  EXPECT_EQ(entry_of(report, "ExitInConstructor").state, PluginState::kRejected);
  EXPECT_EQ(entry_of(report, "FailCreate").state, PluginState::kRejected);
  EXPECT_EQ(entry_of(report, "FailSelfTest").state, PluginState::kIdle);
  EXPECT_EQ(entry_of(report, "PrintInConstructor").state, PluginState::kReady);
  EXPECT_THAT(
      entry_of(report, "PrintInConstructor").warnings,
      testing::ElementsAre(testing::HasSubstr("prints to standard output")));
  EXPECT_THAT(
      registry.load("fake-trapinconstructor").status().message(),
      testing::HasSubstr("is rejected: crashed with SIGILL"));
}

TEST(Registry, TriesAnIdlePluginBeforeItIsLoaded) {
  const TempDir dir;
  dir.add_fake("sm61_trap");
  RegistryOptions options = options_for(dir);
  options.cuda_driver = "/nowhere/libcuda.so.1";
  const Registry registry = Registry::discover(options);
  EXPECT_EQ(registry.report().plugins[0].state, PluginState::kIdle);
  const auto plugin = registry.load("cuda-sm61-trap");
  ASSERT_FALSE(plugin.ok());
  EXPECT_THAT(plugin.status().message(), testing::HasSubstr("crashed with SIGILL while loading"));
}

TEST(Registry, WarmCacheSparesTheChild) {
  const TempDir dir;
  dir.add_fake("good");
  const RegistryOptions options = options_for(dir);
  EXPECT_FALSE(Registry::discover(options).report().plugins[0].probe->cached);
  const Registry warm = Registry::discover(options);
  EXPECT_TRUE(warm.report().plugins[0].probe->cached);
  EXPECT_EQ(warm.report().plugins[0].devices, std::vector<std::string>{"fake-good-0"});
  RecordProperty("warm_us", std::to_string(warm.report().discover_ms * 1000));
  EXPECT_LT(warm.report().discover_ms, 20);
}

// On the plugins of this build, as a user's start has them; the best of some runs, since other work
// on the machine only adds.
TEST(Registry, AStartCostsLittleMoreWithTheProbeOnceItsCacheIsWarm) {
  const TempDir dir;
  RegistryOptions options;
  options.cache_folder = dir.path() / "cache";
  const auto best_ms = [&](bool probe) {
    options.probe = probe;
    double best = 1e9;
    for (int i = 0; i < 7; ++i) {
      const Registry registry = Registry::discover(options);
      const PluginEntry* cpu = registry.report().find("cpu");
      EXPECT_NE(cpu, nullptr);
      EXPECT_EQ(cpu != nullptr && cpu->probe.has_value(), probe);
      best = std::min(best, registry.report().discover_ms);
    }
    return best;
  };
  static_cast<void>(Registry::discover(options));  // fills the cache
  const double with = best_ms(true);
  const double without = best_ms(false);
  RecordProperty("with_probe_ms", std::to_string(with));
  RecordProperty("without_probe_ms", std::to_string(without));
  EXPECT_LT(with - without, 20);
}

TEST(Registry, UsesPluginsUntriedWithoutTheHelperButSaysSo) {
  const TempDir dir;
  dir.add_fake("good");
  RegistryOptions options = options_for(dir);
  options.probe_program = "/nowhere/pavo-probe";
  const Registry registry = Registry::discover(options);
  EXPECT_EQ(registry.report().plugins[0].state, PluginState::kReady);
  EXPECT_THAT(
      registry.report().plugins[0].warnings,
      testing::ElementsAre(testing::HasSubstr("is not there")));
  EXPECT_TRUE(registry.load("fake-good").ok());
}

}  // namespace
}  // namespace pavo
