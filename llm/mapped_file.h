// A file mapped read-only into memory: weights are read where they lie, and pages that the system
// drops come back from the file instead of from swap.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/status.h"

namespace pavo::llm {

// Owns the mapping; movable, bytes() keeps its address. Immutable, so any thread may read it. The
// file must not be shortened by others while it is mapped: the system answers a read past the new
// end with SIGBUS, which no check here can turn into a status.
class MappedFile {
 public:
  // kInvalidFile for a missing, empty, unreadable or irregular file, with the system's reason.
  static Result<MappedFile> open(const std::string& path);

  MappedFile() = default;
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace pavo::llm
