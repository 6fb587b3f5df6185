#include "core/plugin_loader.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "core/log.h"
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

}  // namespace

Result<const LoadedPlugin*> load_plugin(
    const std::filesystem::path& path, const PluginFileFacts& facts) {
  const std::lock_guard<std::mutex> lock(loaded().mutex);
  if (const auto it = loaded().plugins.find(path); it != loaded().plugins.end()) {
    return static_cast<const LoadedPlugin*>(it->second.get());
  }
  PAVO_ASSIGN_OR_RETURN(const PluginLibrary library, open_plugin_library(path));
  auto plugin = std::make_unique<LoadedPlugin>();
  // Owned by nobody on purpose: a plugin that failed below is mapped all the same.
  plugin->host = new HostApi(facts.note.id, [](int32_t level, std::string_view message) {
    log_message(static_cast<LogLevel>(level), message);
  });
  PAVO_ASSIGN_OR_RETURN(plugin->api, query_plugin(library, plugin->host->table()));
  PAVO_RETURN_IF_ERROR(check_plugin_table(plugin->api, facts.note));
  plugin->note = facts.note;
  plugin->path = path;
  const LoadedPlugin* result = plugin.get();
  loaded().plugins.emplace(path, std::move(plugin));
  return result;
}

}  // namespace pavo
