// Brings a plugin into this process: the last of the three stages, after its note was read and a
// child process has tried it. Loaded plugins stay until the process ends.
#pragma once

#include <filesystem>

#include "pavo/plugin.h"

#include "core/host_api.h"
#include "core/plugin_note.h"
#include "core/status.h"

namespace pavo {

// Valid until the process ends.
struct LoadedPlugin {
  const pavo_plugin_api* api = nullptr;  // checked: every mandatory function is there
  PluginNote note;
  std::filesystem::path path;
  HostApi* host = nullptr;  // counts this plugin's host memory
};

// Loads the file, agrees on a version, checks the table. The same file again gives the same object.
// path: canonical, as search_plugins returns it. Thread-safe. The status names the fault, without
// the path. What the plugin prints to standard output meanwhile goes to standard error.
// cache_folder: where a crash is remembered (core/crash_record.h); empty: nowhere.
Result<const LoadedPlugin*> load_plugin(
    const std::filesystem::path& path,
    const PluginFileFacts& facts,
    const std::filesystem::path& cache_folder = {});

}  // namespace pavo
