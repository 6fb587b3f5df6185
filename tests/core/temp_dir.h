// A fresh folder that only its owner can write to, removed with all it holds at the end of a test.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace pavo::test {

class TempDir {
 public:
  TempDir() {
    std::string name = (std::filesystem::temp_directory_path() / "pavo-test-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) {
      path_ = name;
    }
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  const std::filesystem::path& path() const { return path_; }

  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    const std::filesystem::path file = path_ / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }

  // Copies a fake plugin (a folder of tests/fakes) into the folder, under its own name.
  std::filesystem::path add_fake(const std::string& name) const {
    const std::filesystem::path file = path_ / (name + ".so");
    std::filesystem::copy_file(std::filesystem::path(PAVO_FAKES_DIR) / name / (name + ".so"), file);
    return file;
  }

 private:
  std::filesystem::path path_;
};

inline std::filesystem::path fake(const std::string& name) {
  return std::filesystem::canonical(std::filesystem::path(PAVO_FAKES_DIR) / name / (name + ".so"));
}

}  // namespace pavo::test
