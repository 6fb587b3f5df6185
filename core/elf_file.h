// Reads what the loader must know of a shared object without running any of it: notes, build id,
// stack flag, needed libraries. Nothing in the file is believed: every offset and count is checked
// against the file's size before use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"

namespace pavo {

struct ElfNote {
  std::string name;
  uint32_t type = 0;
  std::string description;
};

struct ElfFacts {
  std::vector<ElfNote> notes;  // every one in the file, those of loaded segments first
  std::string build_id;        // lower-case hex; empty if the linker wrote none
  bool executable_stack = false;
  std::vector<std::string> needed;  // names as in DT_NEEDED
  int64_t file_bytes = 0;
  int64_t mtime_ns = 0;
};

// Status kInvalidFile names what is wrong: "not an ELF file", "ELF for aarch64, expected x86-64",
// ...; kIo if the file cannot be read. The file may change while it is read; nothing is mapped.
Result<ElfFacts> read_elf_facts(const std::filesystem::path& path);

}  // namespace pavo
