#include "llm/mapped_file.h"

#include <cstring>

#include <sys/stat.h>
#include <unistd.h>

#include "tests/llm/temp_dir.h"

namespace pavo::llm {
namespace {

using testing::contains;
using testing::TempDir;

TEST(MappedFile, GivesTheBytesAndKeepsTheirAddressWhenMoved) {
  const TempDir dir;
  auto opened = MappedFile::open(dir.write("a", "hello"));
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  const auto bytes = opened->bytes();
  const MappedFile moved = std::move(*opened);
  ASSERT_EQ(moved.bytes().size(), 5u);
  EXPECT_EQ(moved.bytes().data(), bytes.data());
  EXPECT_EQ(std::memcmp(bytes.data(), "hello", 5), 0);
}

TEST(MappedFile, NamesWhatIsWrong) {
  const TempDir dir;
  const std::string pipe = dir.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const std::pair<std::string, const char*> cases[] = {
      {dir.path() + "/missing", "No such file or directory"},
      {dir.path(), "directory"},
      {pipe, "regular file"},
      {dir.write("empty", ""), "empty"}};
  for (const auto& [path, reason] : cases) {
    const auto opened = MappedFile::open(path);
    ASSERT_FALSE(opened.ok()) << path;
    EXPECT_EQ(opened.status().code(), Code::kInvalidFile);
    EXPECT_TRUE(contains(opened.status().message(), reason));
    EXPECT_TRUE(contains(opened.status().message(), path));
  }
}

TEST(MappedFile, NamesMissingPermission) {
  const TempDir dir;
  const std::string path = dir.write("secret", "x");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  // Root may read every file, so become somebody else meanwhile.
  const uid_t user = ::geteuid();
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(::chmod(dir.path().c_str(), 0755), 0);
  ASSERT_EQ(::seteuid(user == 0 ? kNobody : user), 0);
  const auto opened = MappedFile::open(path);
  ASSERT_EQ(::seteuid(user), 0);
  ASSERT_FALSE(opened.ok());
  EXPECT_TRUE(contains(opened.status().message(), "Permission denied"));
}

}  // namespace
}  // namespace pavo::llm
