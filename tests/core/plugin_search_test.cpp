#include "core/plugin_search.h"

#include <filesystem>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

namespace fs = std::filesystem;
using test::TempDir;

PluginPaths only_command_line(std::vector<std::string> entries) {
  PluginPaths paths;
  paths.command_line = std::move(entries);
  return paths;
}

TEST(PluginSearch, KeepsTheOrderOfPlaces) {
  const TempDir dir;
  for (const char* name : {"line", "environment", "config", "bin/plugins", "lib/pavo/plugins"}) {
    dir.write(std::string(name) + "/p.so", name);
  }
  PluginPaths paths = only_command_line({dir.path() / "line"});
  paths.environment = (dir.path() / "environment").string() + "::";
  paths.config = {dir.path() / "config"};
  paths.executable = dir.path() / "bin/pavo";
  const SearchResult result = search_plugins(paths);
  ASSERT_EQ(result.places.size(), 5u);
  ASSERT_EQ(result.files.size(), 5u);
  const PlaceSource order[] = {
      PlaceSource::kCommandLine,
      PlaceSource::kEnvironment,
      PlaceSource::kConfig,
      PlaceSource::kNextToBinary,
      PlaceSource::kInstallPrefix};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(result.places[i].source, order[i]);
    EXPECT_TRUE(result.places[i].searched) << result.places[i].reason;
    EXPECT_EQ(result.files[i].place, i);
    EXPECT_TRUE(result.files[i].status.ok());
  }
}

TEST(PluginSearch, ListsLibrariesByNameAndTakesSingleFiles) {
  const TempDir dir;
  dir.write("b.so", "");
  dir.write("a.so", "");
  dir.write("a.so.debug", "");
  dir.write("deep/c.so", "");
  const SearchResult result =
      search_plugins(only_command_line({dir.path(), dir.path() / "deep/c.so"}));
  ASSERT_EQ(result.files.size(), 3u);
  EXPECT_EQ(result.files[0].path.filename(), "a.so");
  EXPECT_EQ(result.files[1].path.filename(), "b.so");
  EXPECT_EQ(result.files[2].path.filename(), "c.so");
}

TEST(PluginSearch, NeverSearchesTheCurrentDirectory) {
  const TempDir dir;
  dir.write("evil.so", "");
  const fs::path before = fs::current_path();
  fs::current_path(dir.path());
  PluginPaths paths = only_command_line({".", "evil.so"});
  paths.environment = "./";
  const SearchResult result = search_plugins(paths);
  fs::current_path(before);
  EXPECT_TRUE(result.files.empty());
  ASSERT_EQ(result.places.size(), 3u);
  for (const SearchPlace& place : result.places) {
    EXPECT_FALSE(place.searched);
    EXPECT_NE(place.reason.find("a relative path"), std::string::npos);
  }
}

TEST(PluginSearch, RefusesWritablePlacesAndFiles) {
  const TempDir dir;
  dir.write("open/p.so", "");
  dir.write("open/below/p.so", "");
  const fs::path file = dir.write("closed/p.so", "");
  fs::permissions(dir.path() / "open", fs::perms::others_write, fs::perm_options::add);
  fs::permissions(file, fs::perms::others_write, fs::perm_options::add);
  const SearchResult result = search_plugins(
      only_command_line({dir.path() / "open", dir.path() / "open/below", dir.path() / "closed"}));
  ASSERT_EQ(result.places.size(), 3u);
  EXPECT_EQ(result.places[0].reason, "it is writable by everybody; run chmod o-w on it");
  EXPECT_NE(result.places[1].reason.find("the folder above"), std::string::npos);
  ASSERT_EQ(result.files.size(), 1u);
  EXPECT_EQ(
      result.files[0].status.message(), "the file is writable by everybody; run chmod o-w on it");
}

TEST(PluginSearch, RefusesForeignOwners) {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "only root can give a folder away";
  }
  const TempDir dir;
  dir.write("theirs/p.so", "");
  ASSERT_EQ(::chown((dir.path() / "theirs").c_str(), 12345, 12345), 0);
  const SearchResult result = search_plugins(only_command_line({dir.path() / "theirs"}));
  ASSERT_EQ(result.places.size(), 1u);
  EXPECT_TRUE(result.files.empty());
  EXPECT_NE(result.places[0].reason.find("owned by user 12345"), std::string::npos);
}

TEST(PluginSearch, FollowsALinkToItsFolderAndDistrustsThatToo) {
  const TempDir dir;
  const fs::path file = dir.write("open/p.so", "");
  fs::create_directories(dir.path() / "mine");
  fs::create_symlink(file, dir.path() / "mine/p.so");
  fs::create_symlink(dir.path() / "nowhere", dir.path() / "mine/q.so");
  fs::permissions(dir.path() / "open", fs::perms::others_write, fs::perm_options::add);
  const SearchResult result = search_plugins(only_command_line({dir.path() / "mine"}));
  ASSERT_EQ(result.files.size(), 2u);
  EXPECT_NE(result.files[0].status.message().find("its folder"), std::string::npos);
  EXPECT_NE(result.files[1].status.message().find("cannot be opened"), std::string::npos);
}

TEST(PluginSearch, SaysThatAFileWasFoundTwiceAndThatAPlaceIsMissing) {
  const TempDir dir;
  dir.write("p.so", "");
  const SearchResult result =
      search_plugins(only_command_line({dir.path(), dir.path() / "p.so", dir.path() / "missing"}));
  ASSERT_EQ(result.files.size(), 2u);
  EXPECT_TRUE(result.files[0].status.ok());
  EXPECT_EQ(result.files[1].status.message(), "the same file was found before");
  EXPECT_FALSE(result.places[2].searched);
  EXPECT_NE(result.places[2].reason.find("No such file"), std::string::npos);
}

}  // namespace
}  // namespace pavo
