#include "core/probe_cache.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/private_file.h"
#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

namespace fs = std::filesystem;

ProbeResult good_result() {
  ProbeResult result;
  result.outcome = ProbeOutcome::kOk;
  result.warnings = {"odd"};
  result.devices = {{"GPU-1", "a \"card\"", "sm_61", true, ""}};
  return result;
}

ProbeKey key_of(int32_t driver = 12040, const std::vector<std::string>& devices = {"GPU-1"}) {
  ElfFacts elf;
  elf.build_id = "abc";
  return ProbeKey::make("/p.so", elf, driver, devices, false);
}

fs::path only_file(const fs::path& folder) {
  return fs::directory_iterator(folder / "probe")->path();
}

TEST(ProbeCache, GivesBackWhatWasStored) {
  const test::TempDir dir;
  const ProbeCache cache(dir.path() / "pavo");
  EXPECT_FALSE(cache.find(key_of()).has_value());
  cache.store(key_of(), good_result());
  const auto found = cache.find(key_of());
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->cached);
  EXPECT_EQ(found->outcome, ProbeOutcome::kOk);
  EXPECT_EQ(found->warnings, std::vector<std::string>{"odd"});
  ASSERT_EQ(found->devices.size(), 1u);
  EXPECT_EQ(found->devices[0].name, "a \"card\"");
  EXPECT_EQ(found->devices[0].architecture, "sm_61");
  EXPECT_TRUE(found->devices[0].tested);
  EXPECT_EQ(fs::status(dir.path() / "pavo").permissions() & fs::perms::mask, fs::perms::owner_all);
}

TEST(ProbeCache, ForgetsWhenWhatTheAnswerHangsOnChanges) {
  const test::TempDir dir;
  const ProbeCache cache(dir.path());
  cache.store(key_of(), good_result());
  EXPECT_FALSE(cache.find(key_of(12050)).has_value());
  EXPECT_FALSE(cache.find(key_of(12040, {"GPU-2"})).has_value());
  ElfFacts elf;
  elf.build_id = "abc";
  elf.mtime_ns = 1;
  EXPECT_FALSE(cache.find(ProbeKey::make("/p.so", elf, 12040, {"GPU-1"}, false)).has_value());
}

TEST(ProbeCache, HashesFilesWithoutABuildId) {
  const test::TempDir dir;
  const auto key = [&](const std::string& bytes) {
    return ProbeKey::make(dir.write("p.so", bytes), ElfFacts(), 0, {}, false).text;
  };
  EXPECT_NE(key("one"), key("two"));
  EXPECT_EQ(key("one"), key("one"));
}

TEST(ProbeCache, RemembersAHangForAWhileAndNoOtherFailure) {
  const test::TempDir dir;
  const ProbeCache cache(dir.path());
  ProbeResult failed;
  failed.outcome = ProbeOutcome::kFailed;
  cache.store(key_of(), failed);
  ProbeResult sick = good_result();
  sick.devices[0].fault = "out of memory";
  cache.store(key_of(), sick);
  EXPECT_FALSE(fs::exists(dir.path() / "probe"));

  ProbeResult hang;
  hang.outcome = ProbeOutcome::kTimedOut;
  hang.text = "did not answer";
  cache.store(key_of(), hang);
  const auto found = cache.find(key_of());
  ASSERT_TRUE(found.has_value());
  EXPECT_THAT(found->text, testing::StartsWith("did not answer; remembered from 0 min ago"));

  const fs::path file = only_file(dir.path());
  auto entry = nlohmann::json::parse(std::ifstream(file));
  entry["time"] = entry["time"].get<int64_t>() - 601;
  std::ofstream(file) << entry;
  EXPECT_FALSE(cache.find(key_of()).has_value());
}

TEST(ProbeCache, IgnoresDamagedFiles) {
  const test::TempDir dir;
  const ProbeCache cache(dir.path());
  cache.store(key_of(), good_result());
  const fs::path file = only_file(dir.path());
  const std::string whole = read_private_file(file, 1 << 20).value_or("");
  for (size_t cut = 0; cut < whole.size(); cut += 13) {
    std::ofstream(file) << whole.substr(0, cut);
    EXPECT_FALSE(cache.find(key_of()).has_value());
  }
  std::ofstream(file) << R"({"key": 3, "time": "x", "result": []})";
  EXPECT_FALSE(cache.find(key_of()).has_value());
  cache.store(key_of(), good_result());
  EXPECT_TRUE(cache.find(key_of()).has_value());
}

TEST(ProbeCache, LivesWithoutAFolder) {
  const ProbeCache none("");
  none.store(key_of(), good_result());
  EXPECT_FALSE(none.find(key_of()).has_value());
  const test::TempDir dir;
  const ProbeCache blocked(dir.write("file", "") / "pavo");
  blocked.store(key_of(), good_result());
  EXPECT_FALSE(blocked.find(key_of()).has_value());
}

TEST(PrivateFile, ReplacesWholeFilesAndLeavesNothingBehind) {
  const test::TempDir dir;
  const fs::path file = dir.path() / "a/b.txt";
  ASSERT_TRUE(write_private_file(file, "one").ok());
  ASSERT_TRUE(write_private_file(file, "two").ok());
  EXPECT_EQ(read_private_file(file, 10), "two");
  EXPECT_FALSE(read_private_file(file, 2).has_value());
  EXPECT_FALSE(read_private_file(dir.path(), 10).has_value());
  EXPECT_EQ(std::distance(fs::directory_iterator(file.parent_path()), {}), 1);
  if (::geteuid() == 0) {
    ASSERT_EQ(::chown(file.c_str(), 12345, 12345), 0);
    EXPECT_FALSE(read_private_file(file, 10).has_value());
  }
}

}  // namespace
}  // namespace pavo
