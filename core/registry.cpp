#include "core/registry.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/host_api.h"

namespace pavo {
namespace {

std::string range_text(uint32_t major, uint32_t low, uint32_t high) {
  return std::to_string(major) + "." + std::to_string(low) + " to " + std::to_string(major) + "." +
         std::to_string(high);
}

// What the note alone tells against a plugin; empty if nothing does.
std::string note_fault(const PluginFileFacts& facts, const RegistryOptions& options) {
  const PluginNote& note = facts.note;
  if (note.abi_major != PAVO_ABI_MAJOR || note.abi_min_minor > kHostMaxMinor ||
      note.abi_max_minor < kHostMinMinor) {
    return "talks ABI " + range_text(note.abi_major, note.abi_min_minor, note.abi_max_minor) +
           ", this program " + range_text(PAVO_ABI_MAJOR, kHostMinMinor, kHostMaxMinor) +
           "; use matching builds";
  }
  if (facts.elf.executable_stack) {
    return "asks for an executable stack, which would weaken the whole program; link it with "
           "-Wl,-z,noexecstack";
  }
  const auto matches = [&](const std::string& name) { return name_matches(name, note); };
  if (std::any_of(options.deny.begin(), options.deny.end(), matches)) {
    return "denied by configuration";
  }
  if (!options.allow.empty() && std::none_of(options.allow.begin(), options.allow.end(), matches)) {
    return "not among the allowed plugins";
  }
  return {};
}

PluginEntry examine(const FoundFile& file, const RegistryOptions& options) {
  PluginEntry entry;
  entry.path = file.path;
  entry.place = file.place;
  if (!file.status.ok()) {
    entry.reason = file.status.message();
    return entry;
  }
  Result<PluginFileFacts> facts = read_plugin_file(file.path);
  if (!facts.ok()) {
    entry.reason = facts.status().message();
    return entry;
  }
  entry.facts = std::move(facts).value();
  entry.reason = note_fault(*entry.facts, options);
  if (entry.reason.empty()) {
    entry.state = PluginState::kReady;
  }
  return entry;
}

// Of several plugins with one id the first found stays.
void reject_duplicates(std::vector<PluginEntry>* plugins) {
  for (size_t i = 0; i < plugins->size(); ++i) {
    PluginEntry& entry = (*plugins)[i];
    for (size_t j = 0; j < i && entry.state != PluginState::kRejected; ++j) {
      const PluginEntry& earlier = (*plugins)[j];
      if (earlier.state != PluginState::kRejected && earlier.id() == entry.id()) {
        entry.state = PluginState::kRejected;
        entry.reason = "plugin " + entry.id() + " was found before, in " + earlier.path.string();
      }
    }
  }
}

std::vector<size_t> cuda_plugins(const std::vector<PluginEntry>& plugins) {
  std::vector<size_t> indices;
  for (size_t i = 0; i < plugins.size(); ++i) {
    if (plugins[i].state != PluginState::kRejected &&
        plugins[i].facts->note.kind == PluginKind::kCuda) {
      indices.push_back(i);
    }
  }
  return indices;
}

// Gives each device to one plugin and writes down every pair's verdict.
void assign_devices(RegistryReport* report) {
  const std::vector<size_t> indices = cuda_plugins(report->plugins);
  std::vector<PluginNote> notes;
  notes.reserve(indices.size());
  for (const size_t index : indices) {
    notes.push_back(report->plugins[index].facts->note);
  }
  const Selection selection = select_devices(report->driver.devices, report->driver.version, notes);
  for (const SelectionCell& cell : selection.grid) {
    const size_t plugin = indices[cell.plugin];
    report->grid.push_back({cell.device, plugin, cell.verdict.match, cell.owner, cell.text});
    if (cell.owner) {
      report->plugins[plugin].devices.push_back(report->driver.devices[cell.device].id);
    }
  }
  for (const size_t index : indices) {
    PluginEntry& entry = report->plugins[index];
    if (entry.devices.empty()) {
      entry.state = PluginState::kIdle;
      entry.reason = report->driver.devices.empty() ? report->driver.absence
                                                    : "it serves none of the devices here";
    }
  }
}

std::string join(const std::vector<std::string>& parts) {
  std::string text;
  for (const std::string& part : parts) {
    text += (text.empty() ? "" : ", ") + part;
  }
  return text.empty() ? "none" : text;
}

Status cannot_load(const RegistryReport& report, std::string_view id) {
  std::vector<std::string> usable;
  for (const PluginEntry& entry : report.plugins) {
    if (entry.state != PluginState::kRejected) {
      usable.push_back(entry.id());
    } else if (entry.id() == id) {
      return Status(
          Code::kNoBackend,
          "plugin " + std::string(id) + " (" + entry.path.string() +
              ") is rejected: " + entry.reason);
    }
  }
  return Status(
      Code::kNoBackend,
      "no plugin " + printable(id, 80) + " was found; there are: " + join(usable) +
          "; pavo doctor shows every place and file");
}

}  // namespace

const char* plugin_state_name(PluginState state) {
  switch (state) {
    case PluginState::kReady:
      return "ready";
    case PluginState::kIdle:
      return "idle";
    case PluginState::kRejected:
      return "rejected";
  }
  return "rejected";
}

bool name_matches(std::string_view name, const PluginNote& note) {
  if (!name.empty() && name.back() == '*') {
    name.remove_suffix(1);
    return note.id.compare(0, name.size(), name) == 0;
  }
  return name == note.id || name == plugin_kind_name(note.kind);
}

const std::string& PluginEntry::id() const {
  static const std::string none;
  return facts ? facts->note.id : none;
}

const PluginEntry* RegistryReport::find(std::string_view id) const {
  for (const PluginEntry& entry : plugins) {
    if (entry.state != PluginState::kRejected && entry.id() == id) {
      return &entry;
    }
  }
  return nullptr;
}

bool RegistryReport::may_use(const PluginEntry& plugin, std::string_view device_id) const {
  if (!plugin.facts || plugin.facts->note.kind != PluginKind::kCuda) {
    return true;
  }
  return std::find(plugin.devices.begin(), plugin.devices.end(), device_id) != plugin.devices.end();
}

Registry Registry::discover(const RegistryOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Registry registry;
  RegistryReport& report = registry.report_;
  SearchResult found = search_plugins(options.paths);
  report.places = std::move(found.places);
  for (const FoundFile& file : found.files) {
    report.plugins.push_back(examine(file, options));
  }
  reject_duplicates(&report.plugins);
  if (options.always_read_devices || !cuda_plugins(report.plugins).empty()) {
    report.devices_read = true;
    report.driver = read_cuda_driver(options.cuda_driver);
    assign_devices(&report);
  }
  report.discover_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return registry;
}

Result<const LoadedPlugin*> Registry::load(std::string_view id) const {
  const PluginEntry* entry = report_.find(id);
  if (entry == nullptr) {
    return cannot_load(report_, id);
  }
  Result<const LoadedPlugin*> plugin = load_plugin(entry->path, *entry->facts);
  if (!plugin.ok()) {
    return plugin.status().with_context(
        "plugin " + entry->id() + " (" + entry->path.string() + ")");
  }
  return plugin;
}

}  // namespace pavo
