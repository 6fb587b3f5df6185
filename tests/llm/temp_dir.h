// A directory that goes away with the test.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace pavo::llm::testing {

class TempDir {
 public:
  TempDir() {
    std::string path = ::testing::TempDir() + "pavo_llm_XXXXXX";
    EXPECT_NE(::mkdtemp(path.data()), nullptr);
    path_ = path;
  }
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  const std::string& path() const { return path_; }
  // Writes a file of this directory and returns its path.
  std::string write(const std::string& name, std::string_view text) const {
    std::string file = path_ + "/" + name;
    std::ofstream out(file, std::ios::binary);
    out << text;
    EXPECT_TRUE(out.good());
    return file;
  }
  std::string write(const std::string& name, std::span<const std::byte> bytes) const {
    return write(name, std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }

 private:
  std::string path_;
};

// For EXPECT_TRUE(contains(status.message(), "field")).
inline ::testing::AssertionResult contains(std::string_view text, std::string_view part) {
  if (text.find(part) != text.npos) {
    return ::testing::AssertionSuccess();
  }
  return ::testing::AssertionFailure() << "'" << text << "' does not contain '" << part << "'";
}

}  // namespace pavo::llm::testing
