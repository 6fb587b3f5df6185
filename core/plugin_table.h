// Loads a shared object and asks it for its table, then checks the whole table before anyone calls
// through it. Used in process by the loader and in the child by pavo-probe.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "pavo/plugin.h"

#include "core/host_api.h"
#include "core/plugin_note.h"
#include "core/status.h"

namespace pavo {

// A Status from what a plugin's function returned; the text is made printable. `what` names the
// call, e.g. "plugin_create".
Status plugin_status(int32_t code, const pavo_error& error, std::string_view what);

// An empty error struct, ready to be passed.
pavo_error make_error();

struct PluginLibrary {
  pavo_plugin_query_fn query = nullptr;
};

// Opens the file and stays open until the process ends: a plugin is never unmapped, because its
// threads and the driver's exit handlers may still run. Bind now, local symbols. The path must be
// absolute. kInvalidFile with the dynamic linker's message.
Result<PluginLibrary> open_plugin_library(const std::filesystem::path& path);

// Calls the query function with this host's versions. kUnsupported for a version mismatch.
Result<const pavo_plugin_api*> query_plugin(PluginLibrary library, const pavo_host_api* host);

// Checks size, version, id and every mandatory function; names what is wrong.
Status check_plugin_table(const pavo_plugin_api* api, const PluginNote& note);

}  // namespace pavo
