#include "core/plugin_loader.h"

#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "core/crash_record.h"
#include "core/log.h"
#include "core/plugin_guard.h"
#include "core/plugin_table.h"

namespace pavo {
namespace {

struct Loaded {
  std::mutex mutex;
  std::map<std::filesystem::path, std::unique_ptr<LoadedPlugin>> plugins;
};

// Never destroyed: plugins may call their host while the process ends.
Loaded& loaded() {
  static Loaded* const instance = new Loaded();
  return *instance;
}

// Standard output belongs to the program's answers; while this lives, it leads to standard error.
class StdoutToStderr {
 public:
  StdoutToStderr() : saved_(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3)) {
    if (saved_ >= 0) {
      std::fflush(stdout);
      ::dup2(STDERR_FILENO, STDOUT_FILENO);
    }
  }
  StdoutToStderr(const StdoutToStderr&) = delete;
  StdoutToStderr& operator=(const StdoutToStderr&) = delete;
  ~StdoutToStderr() {
    if (saved_ >= 0) {
      std::fflush(stdout);
      ::dup2(saved_, STDOUT_FILENO);
      ::close(saved_);
    }
  }

 private:
  int saved_;
};

// Plugins whose strikes are forgiven when this process, having used them, ends in an ordinary way.
struct Forgiven {
  const pavo_plugin_api* api;
  CrashRecords records;
  std::string key;
};

std::vector<Forgiven>& forgiven() {
  static auto* const instance = new std::vector<Forgiven>();
  return *instance;
}

void forgive() {
  for (const Forgiven& plugin : forgiven()) {
    if (plugin_was_used(plugin.api)) {
      plugin.records.clear(plugin.key);
    }
  }
}

void watch_plugin(
    const pavo_plugin_api* api,
    const std::string& id,
    const PluginLibrary& library,
    const CrashRecords& records,
    const std::string& key) {
  guard_plugin(api, id, reinterpret_cast<const void*>(library.query), records.crash_file(key));
  if (forgiven().empty()) {
    std::atexit(forgive);
  }
  forgiven().push_back({api, records, key});
}

}  // namespace

Result<const LoadedPlugin*> load_plugin(
    const std::filesystem::path& path,
    const PluginFileFacts& facts,
    const std::filesystem::path& cache_folder) {
  const std::lock_guard<std::mutex> lock(loaded().mutex);
  if (const auto it = loaded().plugins.find(path); it != loaded().plugins.end()) {
    return static_cast<const LoadedPlugin*>(it->second.get());
  }
  const CrashRecords records(cache_folder);
  const std::string key = CrashRecords::key_of(path, facts.elf);
  const LoadMarker marker(records, key);
  const StdoutToStderr diversion;
  PAVO_ASSIGN_OR_RETURN(const PluginLibrary library, open_plugin_library(path));
  auto plugin = std::make_unique<LoadedPlugin>();
  // Immortal, since a plugin that failed below is mapped all the same.
  plugin->host = &HostApi::immortal(facts.note.id, [](int32_t level, std::string_view message) {
    log_message(static_cast<LogLevel>(level), message);
  });
  PAVO_ASSIGN_OR_RETURN(plugin->api, query_plugin(library, plugin->host->table()));
  PAVO_RETURN_IF_ERROR(check_plugin_table(plugin->api, facts.note));
  records.clear_load_failures(key);
  watch_plugin(plugin->api, facts.note.id, library, records, key);
  plugin->note = facts.note;
  plugin->path = path;
  const LoadedPlugin* result = plugin.get();
  loaded().plugins.emplace(path, std::move(plugin));
  return result;
}

}  // namespace pavo
