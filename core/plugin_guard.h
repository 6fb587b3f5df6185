// Knows at every moment which plugin each thread is in, so that a crash or a hang at run time has
// a name on it: a line on standard error now, a strike in the record for the next start.
//
// The program (not a library that embeds Pavo) turns the two watchers on in main().
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "pavo/plugin.h"

namespace pavo {

// Makes a loaded plugin known. code: any function of it. crash_file: what to write when it takes
// the process down; may be empty. At most 32 plugins; more are not watched. Thread-safe.
void guard_plugin(
    const pavo_plugin_api* api,
    const std::string& id,
    const void* code,
    const std::filesystem::path& crash_file);

// True if work was submitted to the plugin in this process.
bool plugin_was_used(const pavo_plugin_api* api);

// Around every call into a plugin that runs its kernels or may block. Costs some 30 ns. Scopes
// nest.
class PluginScope {
 public:
  // name: of the table's function, static text. "submit" counts as use of the plugin.
  PluginScope(const pavo_plugin_api* api, const char* name);
  PluginScope(const PluginScope&) = delete;
  PluginScope& operator=(const PluginScope&) = delete;
  ~PluginScope();

 private:
  const pavo_plugin_api* outer_api_;
  const char* outer_name_;
  int64_t outer_start_ns_;
};

// Takes SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP and SIGABRT. A crash in a plugin is written down,
// then the process ends by that signal as it would have. Signals that someone handles already are
// left alone. The calling thread gets a stack of its own for it.
void watch_crashes();

// Ends the process with exit code 1 and one line when a call into a plugin takes longer than the
// limit. Starts one thread, or warns if the system has none; the second call only changes the
// limit.
void watch_hangs(std::chrono::milliseconds limit);

}  // namespace pavo
