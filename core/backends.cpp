#include "core/backends.h"

#include <algorithm>

#include "pavo/plugin_helpers.h"

#include "core/log.h"
#include "core/plugin_options.h"
#include "core/text.h"

namespace pavo {
namespace {

constexpr const char* kCpuPlugin = "cpu";
constexpr const char* kTimingsOption = "timings";

using sdk::view;

struct Candidate {
  std::shared_ptr<PluginInstance> plugin;
  BackendName name;
};

std::string instead(const std::vector<Candidate>& candidates) {
  std::string known;
  for (const Candidate& candidate : candidates) {
    known += (known.empty() ? "" : ", ") + backend_text(candidate.name);
  }
  return "; there are: " + (known.empty() ? "none" : known) + "; `pavo doctor` tells more";
}

// What is known of backends that the selector means but that cannot serve; empty: nothing.
std::string why_not(const RegistryReport& report, const std::string& selector) {
  for (const PluginEntry& entry : report.plugins) {
    if (entry.facts && selects(selector, entry.backend()) && !entry.reason.empty()) {
      return entry.id() + " is " + plugin_state_name(entry.state) + ": " + entry.reason;
    }
  }
  for (const DevicePluginPair& pair : report.grid) {
    const std::string& device = report.driver.devices[pair.device].id;
    const BackendName name = report.backend(report.plugins[pair.plugin], device);
    if (!pair.chosen && selects(selector, name)) {
      return backend_text(name) + ": " + pair.text;
    }
  }
  return {};
}

Status no_backend(
    const RegistryReport& report,
    const std::string& what,
    const std::string& selector,
    const std::vector<Candidate>& candidates) {
  const std::string why = why_not(report, selector);
  return Status(
      Code::kNoBackend,
      what + " '" + printable(selector, 80) + "' cannot serve here: " +
          (why.empty() ? "no plugin, architecture or device of that name was found" : why) +
          instead(candidates));
}

Status nothing_to_run_on(const RegistryReport& report) {
  std::string text;
  for (const PluginEntry& entry : report.plugins) {
    text += "; " + (entry.facts ? entry.id() : entry.path.string()) + " is " +
            plugin_state_name(entry.state) + (entry.reason.empty() ? "" : ": " + entry.reason);
  }
  for (const SearchPlace& place : report.places) {
    text += report.plugins.empty() ? "; looked in " + place.path.string() : "";
  }
  return Status(
      Code::kNoBackend,
      "no backend can run it" + (text.empty() ? "; no folder was searched" : text) +
          "; `pavo doctor` tells more");
}

// Ids of the plugins that could serve the request: each but for a named one is ready.
std::vector<std::string> useful_plugins(const Registry& registry, const std::string& backend) {
  std::vector<std::string> named;
  std::vector<std::string> ready;
  for (const PluginEntry& entry : registry.report().plugins) {
    const auto add = [&](std::vector<std::string>* ids) {
      if (std::find(ids->begin(), ids->end(), entry.id()) == ids->end()) {
        ids->push_back(entry.id());
      }
    };
    if (entry.state != PluginState::kRejected && selects(backend, entry.backend())) {
      add(&named);
    }
    if (entry.state == PluginState::kReady ||
        (entry.state == PluginState::kIdle && entry.facts->note.kind == PluginKind::kCpu)) {
      add(&ready);
    }
  }
  if (!named.empty() && std::find(named.begin(), named.end(), kCpuPlugin) == named.end() &&
      registry.report().find(kCpuPlugin) != nullptr) {
    named.emplace_back(kCpuPlugin);
  }
  return named.empty() ? ready : named;
}

// Where options of a plugin were set: one of them, or all ("").
std::string source_of(
    const BackendRequest& request, const std::string& plugin, const std::string& option = {}) {
  std::string text;
  const auto options = request.plugin_options.find(plugin);
  if (options == request.plugin_options.end()) {
    return text;
  }
  for (const auto& [key, value] : options->second) {
    const auto source = request.option_sources.find(plugin + "." + key);
    const bool asked = option.empty() || option == key;
    if (asked && source != request.option_sources.end() &&
        text.find(source->second) == std::string::npos) {
      text += (text.empty() ? "" : ", ") + source->second;
    }
  }
  return text;
}

// As text: what the request says of the plugin and what follows from the rest of it.
Result<std::map<std::string, std::string>> options_for(
    const pavo_plugin_api* api, const BackendRequest& request, const std::string& id) {
  std::map<std::string, std::string> options;
  if (const auto asked = request.plugin_options.find(id); asked != request.plugin_options.end()) {
    options = asked->second;
  }
  if (request.node_timings) {
    PAVO_ASSIGN_OR_RETURN(const auto infos, options_of(api));
    if (find_option(infos, kTimingsOption) != nullptr) {
      options.emplace(kTimingsOption, "1");
    }
  }
  return options;
}

// Adds the plugin's devices that it may use.
Status add_candidates(
    const Registry& registry,
    const BackendRequest& request,
    const std::string& id,
    std::vector<Candidate>* candidates) {
  PAVO_ASSIGN_OR_RETURN(auto plugin, create_instance(registry, request, id));
  PAVO_ASSIGN_OR_RETURN(const auto infos, plugin->devices());
  const RegistryReport& report = registry.report();
  const PluginEntry& entry = *report.find(id);  // it was loaded
  for (const PluginInstance::DeviceInfo& info : infos) {
    BackendName name = report.backend(entry, info.id);
    const pavo_value* architecture = find_value(info.caps, PAVO_CAP_ARCH);
    if (name.architecture.empty() && architecture != nullptr &&
        architecture->type == PAVO_VALUE_STRING) {
      name.architecture = std::string(view(architecture->string_value));
    }
    // A plugin also lists what is another one's, or what its self-test failed on.
    if (report.may_use(entry, info.id) && registry.policy().refusal(name).empty()) {
      candidates->push_back({plugin, std::move(name)});
    }
  }
  return Status();
}

// In the order in which the devices were named; every name must be there.
Result<std::vector<Candidate>> pick_named(
    const RegistryReport& report,
    const std::vector<Candidate>& candidates,
    const std::vector<std::string>& names) {
  std::vector<Candidate> picked;
  const auto is_picked = [&picked](const Candidate& candidate) {
    return std::any_of(picked.begin(), picked.end(), [&](const Candidate& other) {
      return other.plugin == candidate.plugin && other.name.device == candidate.name.device;
    });
  };
  for (const std::string& name : names) {
    bool found = false;
    for (const Candidate& candidate : candidates) {
      if (selects(name, candidate.name)) {
        found = true;
        if (!is_picked(candidate)) {
          picked.push_back(candidate);
        }
      }
    }
    if (!found) {
      return no_backend(report, "device", name, candidates);
    }
  }
  return picked;
}

// All that the request may use, best first.
Result<std::vector<Candidate>> ranked_candidates(
    const Registry& registry, const BackendRequest& request) {
  const RegistryReport& report = registry.report();
  const bool named = request.backend != "auto";
  std::vector<Candidate> candidates;
  for (const std::string& id : useful_plugins(registry, request.backend)) {
    const Status added = add_candidates(registry, request, id, &candidates);
    if (!added.ok() && (named || added.code() == Code::kInvalidArgument)) {
      return added;
    }
    if (!added.ok()) {
      log_warn("goes on without plugin " + id + ": " + added.message());
    }
  }
  std::stable_sort(candidates.begin(), candidates.end(), [&](const auto& a, const auto& b) {
    return registry.policy().rank_of(a.name) < registry.policy().rank_of(b.name);
  });
  if (!named) {
    return candidates;
  }
  const auto of_backend = [&](const Candidate& c) { return selects(request.backend, c.name); };
  const auto rest = std::stable_partition(candidates.begin(), candidates.end(), of_backend);
  if (rest == candidates.begin()) {
    return no_backend(report, "backend", request.backend, candidates);
  }
  // Of the others only the CPU stays, which runs what the backend refuses.
  candidates.erase(
      std::remove_if(
          rest, candidates.end(), [](const Candidate& c) { return c.name.plugin != kCpuPlugin; }),
      candidates.end());
  return candidates;
}

void warn_of_strange_options(const RegistryReport& report, const BackendRequest& request) {
  std::vector<std::string> ids;
  for (const PluginEntry& entry : report.plugins) {
    if (entry.facts) {
      ids.push_back(entry.id());
    }
  }
  for (const auto& [plugin, options] : request.plugin_options) {
    const std::string nearest = nearest_name(plugin, ids);
    if (std::find(ids.begin(), ids.end(), plugin) == ids.end() && !nearest.empty()) {
      log_warn(
          "options of a plugin '" + printable(plugin, 80) + "' (" + source_of(request, plugin) +
          "), which is not here; did you mean '" + nearest + "'?");
    }
  }
}

// What the request may and must use, best first.
Result<std::vector<Candidate>> choose(const Registry& registry, const BackendRequest& request) {
  PAVO_ASSIGN_OR_RETURN(std::vector<Candidate> candidates, ranked_candidates(registry, request));
  const RegistryReport& report = registry.report();
  if (candidates.empty()) {
    return nothing_to_run_on(report);
  }
  if (!request.devices.empty()) {
    PAVO_ASSIGN_OR_RETURN(candidates, pick_named(report, candidates, request.devices));
  }
  for (const std::string& selector : registry.policy().require) {
    if (std::none_of(candidates.begin(), candidates.end(), [&](const Candidate& candidate) {
          return selects(selector, candidate.name);
        })) {
      return no_backend(report, "required backend", selector, candidates);
    }
  }
  return candidates;
}

}  // namespace

Result<std::vector<std::unique_ptr<Device>>> open_devices(
    const Registry& registry, const BackendRequest& request) {
  warn_of_strange_options(registry.report(), request);
  PAVO_ASSIGN_OR_RETURN(std::vector<Candidate> candidates, choose(registry, request));
  std::vector<std::unique_ptr<Device>> devices;
  for (Candidate& candidate : candidates) {
    PAVO_ASSIGN_OR_RETURN(auto device, Device::open(candidate.plugin, candidate.name.device));
    devices.push_back(std::move(device));
  }
  return devices;
}

Result<std::vector<BackendName>> choose_backends(
    const Registry& registry, const BackendRequest& request) {
  PAVO_ASSIGN_OR_RETURN(const std::vector<Candidate> candidates, choose(registry, request));
  std::vector<BackendName> names(candidates.size());
  std::transform(
      candidates.begin(), candidates.end(), names.begin(), [](const auto& c) { return c.name; });
  return names;
}

Result<std::shared_ptr<PluginInstance>> create_instance(
    const Registry& registry, const BackendRequest& request, const std::string& id) {
  PAVO_ASSIGN_OR_RETURN(const LoadedPlugin* loaded, registry.load(id));
  PAVO_ASSIGN_OR_RETURN(const auto options, options_for(loaded->api, request, id));
  const auto with_source = [](const Status& status, const std::string& source) {
    const bool users = status.code() == Code::kInvalidArgument && !source.empty();
    return users ? status.with_context(source) : status;
  };
  std::vector<OptionValue> values;
  std::vector<std::string> faults;
  for (const auto& [key, text] : options) {
    auto value = convert_options(loaded->api, {{key, text}});
    if (value.ok()) {
      values.push_back(std::move(value->front()));
    } else if (value.status().code() != Code::kInvalidArgument) {
      return value.status();
    } else {
      faults.push_back(with_source(value.status(), source_of(request, id, key)).message());
    }
  }
  if (!faults.empty()) {
    return Status(Code::kInvalidArgument, join(faults, "\n"));
  }
  auto instance = PluginInstance::create(loaded->api, std::move(values));
  return instance.ok() ? std::move(instance)
                       : with_source(instance.status(), source_of(request, id));
}

Status check_plugin_options(
    const Registry& registry, const BackendRequest& request, std::vector<std::string>* unchecked) {
  std::vector<std::string> faults;
  for (const auto& [plugin, options] : request.plugin_options) {
    const auto instance = create_instance(registry, request, plugin);
    if (!instance.ok() && instance.status().code() == Code::kInvalidArgument) {
      faults.push_back(instance.status().message());
    } else if (!instance.ok()) {
      unchecked->push_back(
          "options of plugin " + printable(plugin, 80) + " (" + source_of(request, plugin) +
          ") are not checked: " + instance.status().message());
    }
  }
  return faults.empty() ? Status() : Status(Code::kInvalidArgument, join(faults, "\n"));
}

}  // namespace pavo
