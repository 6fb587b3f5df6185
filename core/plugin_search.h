// Where plugins are looked for, in order, and which files are worth reading. A folder that someone
// else could write to is refused, since loading a plugin runs its code. The current directory is
// never searched. Contract: docs/plugin-interface.md, "Finding".
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"

namespace pavo {

// In the order of search.
enum class PlaceSource : int32_t {
  kCommandLine,
  kEnvironment,  // PAVO_PLUGIN_PATH
  kConfig,
  kNextToBinary,   // plugins/ in the program's folder
  kInstallPrefix,  // ../lib/pavo/plugins seen from the program's folder
};

const char* place_source_name(PlaceSource source);

// What a caller wants searched; entries are absolute paths of folders or of single files.
struct PluginPaths {
  std::vector<std::string> command_line;
  std::vector<std::string> config;
  // PAVO_PLUGIN_PATH, ':' between entries. Read from the environment by default_plugin_paths.
  std::optional<std::string> environment;
  // The running program; empty: the last two places are left out.
  std::filesystem::path executable;
};

// The environment and the running program. Under elevated privileges the environment stays out.
PluginPaths default_plugin_paths();

struct SearchPlace {
  std::filesystem::path path;
  PlaceSource source = PlaceSource::kCommandLine;
  bool searched = false;
  std::string reason;  // why it was not searched; empty if it was
};

struct FoundFile {
  std::filesystem::path path;  // canonical
  size_t place = 0;            // index in SearchResult::places
  // Set if the file may not be used: writable by others, foreign owner, the same file again.
  Status status;
};

struct SearchResult {
  std::vector<SearchPlace> places;
  std::vector<FoundFile> files;  // in search order; within a folder by name
};

SearchResult search_plugins(const PluginPaths& paths);

}  // namespace pavo
