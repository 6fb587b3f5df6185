#include "core/registry.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/crash_record.h"
#include "core/device_assignment.h"
#include "core/host_api.h"
#include "core/text.h"

namespace pavo {
namespace {

std::string range_text(uint32_t major, uint32_t low, uint32_t high) {
  return std::to_string(major) + "." + std::to_string(low) + " to " + std::to_string(major) + "." +
         std::to_string(high);
}

// What the file alone tells against a plugin; empty if nothing does.
std::string note_fault(const PluginFileFacts& facts) {
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
  return {};
}

PluginEntry examine(const FoundFile& file) {
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
  entry.reason = note_fault(*entry.facts);
  entry.faulty = !entry.reason.empty();
  if (entry.reason.empty()) {
    entry.state = PluginState::kReady;
  }
  return entry;
}

// Rejects what the user does not want whatever devices it has. A selector that names no plugin here
// may name a device or an architecture: then what is allowed shows later.
void reject_unwanted(const BackendPolicy& policy, std::vector<PluginEntry>* plugins) {
  const auto names_a_plugin = [&](const std::string& selector) {
    return selector == "cpu" || selector == "cuda" || selector == "other" ||
           std::any_of(plugins->begin(), plugins->end(), [&](const PluginEntry& entry) {
             return entry.facts && selects(selector, entry.backend());
           });
  };
  const auto& allow = policy.allow;
  const bool devices_allowed = !std::all_of(allow.begin(), allow.end(), names_a_plugin);
  for (PluginEntry& entry : *plugins) {
    if (!entry.facts) {
      continue;
    }
    std::string refusal = policy.refusal(entry.backend());
    const bool allowed = allow.empty() || devices_allowed ||
                         std::any_of(allow.begin(), allow.end(), [&](const std::string& selector) {
                           return selects(selector, entry.backend());
                         });
    if (refusal.empty() && !allowed) {
      refusal = "not among the allowed backends (backends.allow)";
    }
    if (!refusal.empty()) {
      entry.state = PluginState::kRejected;
      entry.faulty = false;
      entry.reason = std::move(refusal);
    }
  }
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

// A plugin that took the program down is named; after the second time it is skipped.
void apply_crash_history(const CrashRecords& records, std::vector<PluginEntry>* plugins) {
  for (PluginEntry& entry : *plugins) {
    if (entry.state == PluginState::kRejected) {
      continue;
    }
    const std::string key = CrashRecords::key_of(entry.path, entry.facts->elf);
    const CrashHistory history = records.find(key);
    if (history.strikes == 0) {
      continue;
    }
    const std::string what = "the last time it was used the program " + history.last;
    if (history.strikes < CrashRecords::kMaxStrikes) {
      entry.suspect = true;
      entry.warnings.push_back(what + "; it is tried again, once");
      continue;
    }
    entry.state = PluginState::kRejected;
    entry.faulty = true;
    entry.reason = what +
                   ", and so it did before; skipped, until you replace the plugin or run: rm " +
                   records.files_of(key);
  }
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
      "no plugin " + printable(id, 80) +
          " was found; there are: " + (usable.empty() ? "none" : join(usable, ", ")) +
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

const std::string& PluginEntry::id() const {
  static const std::string none;
  return facts ? facts->note.id : none;
}

BackendName PluginEntry::backend() const {
  return {id(), facts ? facts->note.kind : PluginKind::kOther, "", ""};
}

BackendName RegistryReport::backend(const PluginEntry& plugin, const std::string& device_id) const {
  BackendName name = plugin.backend();
  name.device = device_id;
  if (plugin.probe) {
    for (const ProbedDevice& probed : plugin.probe->devices) {
      name.architecture = probed.id == device_id ? probed.architecture : name.architecture;
    }
  }
  for (const CudaDevice& device : driver.devices) {
    name.architecture = device.id == device_id ? architecture_of(device) : name.architecture;
  }
  return name;
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
  const auto owns = [&](const PluginEntry& entry) {
    return std::find(entry.devices.begin(), entry.devices.end(), device_id) != entry.devices.end();
  };
  const bool known = plugin.probe && plugin.probe->outcome == ProbeOutcome::kOk;
  const bool cuda = plugin.facts && plugin.facts->note.kind == PluginKind::kCuda;
  return cuda || known ? owns(plugin) : std::none_of(plugins.begin(), plugins.end(), owns);
}

std::vector<std::string> RegistryReport::notices() const {
  std::vector<std::string> lines;
  for (const PluginEntry& entry : plugins) {
    const std::string name = "plugin " + (entry.facts ? entry.id() : entry.path.string()) + ": ";
    const bool named = places[entry.place].source < PlaceSource::kNextToBinary;
    if (entry.faulty || (!entry.facts && named)) {
      lines.push_back(name + entry.reason);
    }
    for (const std::string& warning : entry.warnings) {
      lines.push_back(name + warning);
    }
  }
  for (const SearchPlace& place : places) {
    if (!place.searched && place.source < PlaceSource::kNextToBinary) {
      lines.push_back("plugin folder " + place.path.string() + ": " + place.reason);
    }
  }
  return lines;
}

Registry Registry::discover(const RegistryOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  Registry registry;
  registry.options_ = options;
  RegistryReport& report = registry.report_;
  SearchResult found = search_plugins(options.paths);
  report.places = std::move(found.places);
  for (const FoundFile& file : found.files) {
    report.plugins.push_back(examine(file));
  }
  reject_unwanted(options.policy, &report.plugins);
  reject_duplicates(&report.plugins);
  apply_crash_history(CrashRecords(options.cache_folder), &report.plugins);
  const bool cuda =
      std::any_of(report.plugins.begin(), report.plugins.end(), [](const PluginEntry& entry) {
        return entry.state != PluginState::kRejected && entry.facts->note.kind == PluginKind::kCuda;
      });
  if (options.always_read_devices || cuda) {
    report.devices_read = true;
    report.driver = read_cuda_driver(options.cuda_driver);
  }
  assign_devices(options, &report);
  report.discover_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return registry;
}

Result<const LoadedPlugin*> Registry::load(std::string_view id) const {
  const PluginEntry* entry = report_.find(id);
  if (entry == nullptr) {
    return cannot_load(report_, id);
  }
  const std::string context = "plugin " + entry->id() + " (" + entry->path.string() + ")";
  if (options_.probe && !entry->probe) {
    // An idle one: nobody needed it until now.
    const ProbeResult probe = probe_without_devices(options_, *entry);
    if (probe.outcome != ProbeOutcome::kOk && probe.outcome != ProbeOutcome::kNotRun) {
      return Status(Code::kNoBackend, context + ": " + probe.text);
    }
  }
  Result<const LoadedPlugin*> plugin =
      load_plugin(entry->path, *entry->facts, options_.cache_folder);
  return plugin.ok() ? std::move(plugin) : plugin.status().with_context(context);
}

}  // namespace pavo
