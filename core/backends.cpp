#include "core/backends.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "core/plugin_call.h"

namespace pavo {
namespace {

constexpr const char* kCpuPlugin = "cpu";

std::string_view view(const pavo_string& string) {
  return {string.data, static_cast<size_t>(string.size)};
}

Result<OptionValue> convert(const pavo_option_info& info, const std::string& text) {
  OptionValue value;
  value.key = std::string(view(info.key));
  value.type = info.type;
  value.string_value = text;
  char* end = nullptr;
  errno = 0;
  if (info.type == PAVO_VALUE_INT) {
    value.int_value = text == "true"    ? 1
                      : text == "false" ? 0
                                        : std::strtoll(text.c_str(), &end, 10);
  } else if (info.type == PAVO_VALUE_FLOAT) {
    value.float_value = std::strtod(text.c_str(), &end);
  }
  if (end != nullptr && (*end != '\0' || end == text.c_str() || errno != 0)) {
    return Status(
        Code::kInvalidArgument,
        "option '" + value.key + "': expected a number (" + std::string(view(info.text)) +
            "), got '" + text + "'");
  }
  return value;
}

// Plugins that could serve the request, best first, the CPU last.
Result<std::vector<std::string>> ranked_plugins(
    const Registry& registry, const BackendRequest& request) {
  std::vector<std::string> ids;
  if (request.backend != "auto") {
    ids.push_back(request.backend);
  } else {
    for (const PluginEntry& entry : registry.report().plugins) {
      const bool listed = std::find(ids.begin(), ids.end(), entry.id()) != ids.end();
      if (entry.state == PluginState::kReady && entry.id() != kCpuPlugin && !listed) {
        ids.push_back(entry.id());
      }
    }
  }
  const PluginEntry* cpu = registry.report().find(kCpuPlugin);
  const bool cpu_listed = std::find(ids.begin(), ids.end(), kCpuPlugin) != ids.end();
  if (cpu != nullptr && !cpu_listed) {
    ids.emplace_back(kCpuPlugin);
  }
  if (ids.empty()) {
    PAVO_RETURN_IF_ERROR(registry.load(kCpuPlugin).status());  // says what was looked for and where
  }
  return ids;
}

struct Candidate {
  std::shared_ptr<PluginInstance> plugin;
  std::string device;
};

// In the order in which the devices were named; every name must be there.
Result<std::vector<Candidate>> pick_named(
    const std::vector<Candidate>& candidates, const std::vector<std::string>& names) {
  std::vector<Candidate> picked;
  for (const std::string& name : names) {
    const auto found = std::find_if(
        candidates.begin(), candidates.end(), [&](const Candidate& c) { return c.device == name; });
    if (found == candidates.end()) {
      std::string known;
      for (const Candidate& candidate : candidates) {
        known += (known.empty() ? "" : ", ") + candidate.device;
      }
      return Status(
          Code::kNoBackend,
          "device '" + name + "' is not there; there are: " + (known.empty() ? "none" : known));
    }
    picked.push_back(*found);
  }
  return picked;
}

}  // namespace

Result<std::vector<OptionValue>> convert_options(
    const pavo_plugin_api* api, const std::map<std::string, std::string>& options) {
  std::vector<OptionValue> values;
  if (options.empty()) {
    return values;
  }
  const pavo_option_info* const* infos = nullptr;
  uint32_t count = 0;
  const std::string plugin(view(api->id));
  PAVO_RETURN_IF_ERROR(call_plugin(
      api, "options", [&](pavo_error* error) { return api->options(&infos, &count, error); }));
  for (const auto& [key, text] : options) {
    const auto* end = infos + count;
    const auto* found = std::find_if(
        infos, end, [&key = key](const pavo_option_info* info) { return view(info->key) == key; });
    if (found == end) {
      std::string known;
      for (uint32_t i = 0; i < count; ++i) {
        known += (i == 0 ? "" : ", ") + std::string(view(infos[i]->key));
      }
      return Status(
          Code::kInvalidArgument,
          "plugin " + plugin + " has no option '" + key + "'; it has: " + known);
    }
    Result<OptionValue> value = convert(**found, text);
    if (!value.ok()) {
      return value.status().with_context("plugin " + plugin);
    }
    values.push_back(std::move(value).value());
  }
  return values;
}

Result<std::vector<std::unique_ptr<Device>>> open_devices(
    const Registry& registry, const BackendRequest& request) {
  PAVO_ASSIGN_OR_RETURN(const std::vector<std::string> ids, ranked_plugins(registry, request));
  std::vector<Candidate> candidates;
  for (const std::string& id : ids) {
    PAVO_ASSIGN_OR_RETURN(const LoadedPlugin* loaded, registry.load(id));
    const auto options = request.plugin_options.find(id);
    std::vector<OptionValue> values;
    if (options != request.plugin_options.end()) {
      PAVO_ASSIGN_OR_RETURN(values, convert_options(loaded->api, options->second));
    }
    PAVO_ASSIGN_OR_RETURN(auto plugin, PluginInstance::create(loaded->api, std::move(values)));
    PAVO_ASSIGN_OR_RETURN(const auto infos, plugin->devices());
    const PluginEntry& entry = *registry.report().find(id);  // it was loaded
    const size_t before = candidates.size();
    for (const PluginInstance::DeviceInfo& info : infos) {
      // A plugin also lists what is another one's, or what its self-test failed on.
      if (registry.report().may_use(entry, info.id)) {
        candidates.push_back({plugin, info.id});
      }
    }
    if (candidates.size() == before && id == request.backend) {
      return Status(
          Code::kNoBackend,
          "backend '" + id + "' has no device on this machine" +
              (entry.reason.empty() ? "" : ": " + entry.reason) + "; `pavo doctor` tells more");
    }
  }
  if (!request.devices.empty()) {
    PAVO_ASSIGN_OR_RETURN(candidates, pick_named(candidates, request.devices));
  }
  std::vector<std::unique_ptr<Device>> devices;
  for (Candidate& candidate : candidates) {
    PAVO_ASSIGN_OR_RETURN(auto device, Device::open(candidate.plugin, candidate.device));
    devices.push_back(std::move(device));
  }
  if (devices.empty()) {
    return Status(Code::kNoBackend, "no device to run on; `pavo doctor` tells why");
  }
  return devices;
}

}  // namespace pavo
