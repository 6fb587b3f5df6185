#include "apps/cli/doctor_report.h"

#include "pavo/plugin_helpers.h"

#include "apps/cli/settings.h"
#include "core/backends.h"
#include "core/device.h"
#include "core/host_api.h"
#include "core/plugin_options.h"

namespace pavo::cli {

namespace {

using nlohmann::ordered_json;

using sdk::view;

ordered_json caps_json(const pavo_values* caps) {
  ordered_json json = ordered_json::object();
  for (uint32_t i = 0; caps != nullptr && i < caps->count; ++i) {
    const pavo_value& value = *caps->items[i];
    ordered_json& slot = json[printable(view(value.key))];
    if (value.type == PAVO_VALUE_INT) {
      slot = value.int_value;
    } else if (value.type == PAVO_VALUE_FLOAT) {
      slot = value.float_value;
    } else {
      slot = printable(view(value.string_value));
    }
  }
  return json;
}

ordered_json options_json(const pavo_plugin_api* api) {
  ordered_json json = ordered_json::array();
  const auto infos = options_of(api);
  if (!infos.ok()) {
    return json;
  }
  for (const pavo_option_info* info : *infos) {
    constexpr const char* kTypes[] = {"integer", "number", "text"};
    const int32_t type = info->type;
    json.push_back(
        {{"key", printable(view(info->key))},
         {"type", type >= 0 && type <= PAVO_VALUE_STRING ? kTypes[type] : "unknown"},
         {"default", printable(view(info->default_value))},
         {"text", printable(view(info->text))}});
  }
  return json;
}

// Why a run does not use this device through this plugin; empty if it may.
std::string device_refusal(
    const Registry& registry, const PluginEntry& entry, const std::string& device) {
  const RegistryReport& report = registry.report();
  const std::string policy = registry.policy().refusal(report.backend(entry, device));
  if (!policy.empty() || report.may_use(entry, device)) {
    return policy;
  }
  for (const PluginEntry& other : report.plugins) {
    if (&other != &entry && report.may_use(other, device)) {
      return "plugin " + other.id() + " serves it";
    }
  }
  return "its self-test failed";
}

// Loads the plugin and lists what it serves; a fault is told in "error".
void add_devices(
    const Registry& registry,
    const BackendRequest& request,
    const PluginEntry& entry,
    ordered_json* plugin) {
  const Result<const LoadedPlugin*> loaded = registry.load(entry.id());
  if (!loaded.ok()) {
    (*plugin)["error"] = loaded.status().message();
    return;
  }
  (*plugin)["options"] = options_json((*loaded)->api);
  const auto instance = create_instance(registry, request, entry.id());
  if (!instance.ok()) {
    (*plugin)["error"] = instance.status().message();
    return;
  }
  const auto devices = (*instance)->devices();
  if (!devices.ok()) {
    (*plugin)["error"] = devices.status().message();
    return;
  }
  (*plugin)["devices"] = ordered_json::array();
  for (const PluginInstance::DeviceInfo& device : *devices) {
    (*plugin)["devices"].push_back(
        {{"id", device.id},
         {"name", device.name},
         {"refusal", device_refusal(registry, entry, device.id)},
         {"caps", caps_json(device.caps)}});
  }
}

ordered_json plugin_json(
    const Registry& registry, const BackendRequest& request, const PluginEntry& entry) {
  ordered_json json = {
      {"path", printable(entry.path.string())},
      {"state", plugin_state_name(entry.state)},
      {"reason", entry.reason}};
  if (entry.facts) {
    json["id"] = entry.id();
    json["version"] = entry.facts->note.version;
    json["kind"] = plugin_kind_name(entry.facts->note.kind);
  }
  if (entry.probe) {
    json["probe"] = {
        {"outcome", probe_outcome_name(entry.probe->outcome)},
        {"text", entry.probe->text},
        {"cached", entry.probe->cached}};
  }
  json["warnings"] = entry.warnings;
  if (entry.state == PluginState::kReady && registry.report().find(entry.id()) == &entry) {
    add_devices(registry, request, entry, &json);
  }
  return json;
}

ordered_json driver_json(const RegistryReport& report) {
  const CudaDriver& driver = report.driver;
  ordered_json json = {
      {"present", driver.present},
      {"library", printable(driver.library)},
      {"version", driver.version == 0 ? "" : cuda_version_text(driver.version)},
      {"absence", driver.absence},
      {"problems", driver.problems},
      {"devices", ordered_json::array()}};
  for (size_t i = 0; i < driver.devices.size(); ++i) {
    const CudaDevice& device = driver.devices[i];
    ordered_json entry = {
        {"id", device.id},
        {"ordinal", device.ordinal},
        {"name", printable(device.name)},
        {"capability", capability_text(device.capability)},
        {"memory_bytes", device.memory_bytes},
        {"pci_id", device.pci_id},
        {"plugins", ordered_json::array()}};
    for (const DevicePluginPair& pair : report.grid) {
      if (pair.device == i) {
        entry["plugins"].push_back(
            {{"id", report.plugins[pair.plugin].id()},
             {"match", code_match_name(pair.match)},
             {"chosen", pair.chosen},
             {"tested", pair.tested},
             {"text", pair.text}});
      }
    }
    json["devices"].push_back(std::move(entry));
  }
  return json;
}

ordered_json places_json(const RegistryReport& report) {
  ordered_json json = ordered_json::array();
  for (const SearchPlace& place : report.places) {
    json.push_back(
        {{"path", printable(place.path.string())},
         {"source", place_source_name(place.source)},
         {"searched", place.searched},
         {"reason", place.reason}});
  }
  return json;
}

// What a run with these settings would use.
ordered_json backends_json(const Registry& registry, const BackendRequest& request) {
  const auto names = choose_backends(registry, request);
  ordered_json json = {
      {"error", names.ok() ? "" : names.status().message()}, {"order", ordered_json::array()}};
  for (const BackendName& name : names.ok() ? *names : std::vector<BackendName>()) {
    json["order"].push_back(
        {{"plugin", name.plugin},
         {"device", printable(name.device)},
         {"architecture", printable(name.architecture)},
         {"text", printable(backend_text(name))}});
  }
  return json;
}

std::string text_of(const ordered_json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// "key value, key value"
std::string caps_text(const ordered_json& caps) {
  std::string text;
  for (const auto& [key, value] : caps.items()) {
    text += (text.empty() ? "" : ", ") + key + " " + text_of(value);
  }
  return text;
}

std::string plugin_text(const ordered_json& plugin) {
  const bool known = plugin.contains("id");
  std::string text = "  " + (known ? text_of(plugin["id"]) + " " + text_of(plugin["version"])
                                   : std::string("not a plugin"));
  text += ": " + text_of(plugin["state"]);
  const std::string reason = text_of(plugin["reason"]);
  text += (reason.empty() ? "" : ", " + reason) + "\n    " + text_of(plugin["path"]) + "\n";
  if (plugin.contains("probe")) {
    const ordered_json& probe = plugin["probe"];
    const std::string why = text_of(probe["text"]);
    text += "    probe: " + text_of(probe["outcome"]) +
            (probe["cached"].get<bool>() ? ", remembered" : "") + (why.empty() ? "" : ", " + why) +
            "\n";
  }
  for (const ordered_json& warning : plugin["warnings"]) {
    text += "    warning: " + text_of(warning) + "\n";
  }
  if (plugin.contains("error")) {
    text += "    error: " + text_of(plugin["error"]) + "\n";
  }
  if (plugin.contains("devices")) {
    for (const ordered_json& device : plugin["devices"]) {
      const std::string refusal = text_of(device["refusal"]);
      text += "    device " + text_of(device["id"]) + ": " + text_of(device["name"]) +
              (refusal.empty() ? "" : "; not used, " + refusal) + "\n";
      text += "      " + caps_text(device["caps"]) + "\n";
    }
  }
  if (plugin.contains("options")) {
    for (const ordered_json& option : plugin["options"]) {
      text += "    option " + text_of(option["key"]) + " (" + text_of(option["type"]) +
              ", default '" + text_of(option["default"]) + "'): " + text_of(option["text"]) + "\n";
    }
  }
  return text;
}

std::string driver_text(const ordered_json& driver) {
  std::string text = "CUDA driver: ";
  text += driver["present"].get<bool>()
              ? "CUDA " + text_of(driver["version"]) + ", " + text_of(driver["library"])
              : "none";
  const std::string absence = text_of(driver["absence"]);
  text += (absence.empty() ? "" : " (" + absence + ")") + "\n";
  for (const ordered_json& problem : driver["problems"]) {
    text += "  problem: " + text_of(problem) + "\n";
  }
  for (const ordered_json& device : driver["devices"]) {
    text += "  " + text_of(device["ordinal"]) + ": " + text_of(device["name"]) + ", " +
            text_of(device["capability"]) + ", " + text_of(device["id"]) + "\n";
    for (const ordered_json& plugin : device["plugins"]) {
      text += std::string("    ") + (plugin["chosen"].get<bool>() ? "* " : "  ") +
              text_of(plugin["id"]) + ": " + text_of(plugin["text"]) + "\n";
    }
  }
  return text;
}

}  // namespace

nlohmann::ordered_json doctor_json(const Registry& registry, const Config& config) {
  const RegistryReport& report = registry.report();
  const BackendRequest request = backend_request(config);
  ordered_json json = {
      {"places", places_json(report)},
      {"plugins", ordered_json::array()},
      {"cuda_driver", driver_json(report)},
      {"settings", ordered_json::array()}};
  for (const PluginEntry& entry : report.plugins) {
    json["plugins"].push_back(plugin_json(registry, request, entry));
  }
  json["backends"] = backends_json(registry, request);
  for (const ConfigLine& line : config_lines(config)) {
    json["settings"].push_back({{"key", line.key}, {"value", line.value}, {"source", line.source}});
  }
  return json;
}

std::string doctor_text(const nlohmann::ordered_json& report) {
  std::string text = "places, in order of search:\n";
  for (const ordered_json& place : report["places"]) {
    const bool searched = place["searched"].get<bool>();
    text += "  " + text_of(place["path"]) + " (" + text_of(place["source"]) + ")" +
            (searched ? "" : ": not searched, " + text_of(place["reason"])) + "\n";
  }
  text += "plugins:\n";
  for (const ordered_json& plugin : report["plugins"]) {
    text += plugin_text(plugin);
  }
  if (report["plugins"].empty()) {
    text += "  none found; nothing can run without at least the CPU plugin\n";
  }
  text += driver_text(report["cuda_driver"]);
  text += "a run would use, in order:\n";
  for (const ordered_json& backend : report["backends"]["order"]) {
    text += "  " + text_of(backend["text"]) + "\n";
  }
  const std::string error = text_of(report["backends"]["error"]);
  text += error.empty() ? "" : "  nothing: " + error + "\n";
  text += "settings:\n";
  for (const ordered_json& line : report["settings"]) {
    text += "  " + text_of(line["key"]) + " = " + text_of(line["value"]) + "  (" +
            text_of(line["source"]) + ")\n";
  }
  return text;
}

}  // namespace pavo::cli
