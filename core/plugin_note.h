// The plugin's note (plugin.h, "The ELF note"): what it is and what it needs, read before any of
// its code runs. Contract: docs/plugin-interface.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/elf_file.h"
#include "core/status.h"

namespace pavo {

// sm_61 or compute_61; `specific` for sm_90a and the like, which run on that very chip only.
struct CudaTarget {
  int32_t capability = 0;  // 61
  bool specific = false;
  std::string name;  // as in the note
};

enum class PluginKind : int32_t { kCpu, kCuda, kOther };

struct PluginNote {
  std::string id;
  std::string version;
  std::string vendor;
  std::string license;
  uint32_t abi_major = 0;
  uint32_t abi_min_minor = 0;
  uint32_t abi_max_minor = 0;
  PluginKind kind = PluginKind::kOther;
  std::vector<CudaTarget> sass;
  std::vector<CudaTarget> ptx;
  int32_t toolkit = 0;     // in the driver's numbering: 12040 for 12.4; 0: not given
  int32_t driver_min = 0;  // 0: any
  std::vector<std::string> needs;
};

const char* plugin_kind_name(PluginKind kind);

// "12.4" for 12040.
std::string cuda_version_text(int32_t version);

// Parses the note's lines. kInvalidFile names the key, the value and what was expected.
Result<PluginNote> parse_plugin_note(std::string_view text);

struct PluginFileFacts {
  PluginNote note;
  ElfFacts elf;
};

// Reads a file's note. kInvalidFile: "no Pavo plugin note (an ordinary library?)" and the faults
// of read_elf_facts and parse_plugin_note.
Result<PluginFileFacts> read_plugin_file(const std::filesystem::path& path);

}  // namespace pavo
