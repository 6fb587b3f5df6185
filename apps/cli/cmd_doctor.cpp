// pavo doctor: where plugins were looked for, what was found, what each can use here and why not,
// and every setting with its source.
#include <algorithm>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "apps/cli/command.h"
#include "apps/cli/io.h"
#include "apps/cli/settings.h"
#include "core/device.h"
#include "core/host_api.h"
#include "core/registry.h"

namespace pavo::cli {

namespace {

using nlohmann::ordered_json;

struct DoctorFlags {
  SettingFlags settings;
  bool json = false;
};

std::string_view view(const pavo_string& text) {
  return {text.data, static_cast<size_t>(text.size)};
}

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
  const pavo_option_info* const* options = nullptr;
  uint32_t count = 0;
  ErrorSlot error;
  if (api->options(&options, &count, error.get()) != PAVO_OK) {
    return json;
  }
  for (uint32_t i = 0; i < count; ++i) {
    json.push_back(
        {{"key", printable(view(options[i]->key))},
         {"default", printable(view(options[i]->default_value))},
         {"text", printable(view(options[i]->text))}});
  }
  return json;
}

// Loads the plugin and lists what it serves; a fault is told in "error".
void add_devices(const Registry& registry, const PluginEntry& entry, ordered_json* plugin) {
  const Result<const LoadedPlugin*> loaded = registry.load(entry.id());
  if (!loaded.ok()) {
    (*plugin)["error"] = loaded.status().message();
    return;
  }
  (*plugin)["options"] = options_json((*loaded)->api);
  const auto instance = PluginInstance::create((*loaded)->api, {});
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
        {{"id", device.id}, {"name", device.name}, {"caps", caps_json(device.caps)}});
  }
}

ordered_json plugin_json(const Registry& registry, const PluginEntry& entry) {
  ordered_json json = {
      {"path", printable(entry.path.string())},
      {"state", plugin_state_name(entry.state)},
      {"reason", entry.reason}};
  if (entry.facts) {
    json["id"] = entry.id();
    json["version"] = entry.facts->note.version;
    json["kind"] = plugin_kind_name(entry.facts->note.kind);
  }
  if (entry.state == PluginState::kReady && registry.report().find(entry.id()) == &entry) {
    add_devices(registry, entry, &json);
  }
  return json;
}

ordered_json report_json(const Registry& registry, const Config& config) {
  const RegistryReport& report = registry.report();
  ordered_json json = {
      {"places", ordered_json::array()},
      {"plugins", ordered_json::array()},
      {"settings", ordered_json::array()}};
  for (const SearchPlace& place : report.places) {
    json["places"].push_back(
        {{"path", printable(place.path.string())},
         {"source", place_source_name(place.source)},
         {"searched", place.searched},
         {"reason", place.reason}});
  }
  for (const PluginEntry& entry : report.plugins) {
    json["plugins"].push_back(plugin_json(registry, entry));
  }
  for (const ConfigLine& line : config_lines(config)) {
    json["settings"].push_back({{"key", line.key}, {"value", line.value}, {"source", line.source}});
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
  if (plugin.contains("error")) {
    text += "    error: " + text_of(plugin["error"]) + "\n";
  }
  if (plugin.contains("devices")) {
    for (const ordered_json& device : plugin["devices"]) {
      text += "    device " + text_of(device["id"]) + ": " + text_of(device["name"]) + "\n";
      text += "      " + caps_text(device["caps"]) + "\n";
    }
  }
  if (plugin.contains("options")) {
    for (const ordered_json& option : plugin["options"]) {
      text += "    option " + text_of(option["key"]) + " (" + text_of(option["default"]) +
              "): " + text_of(option["text"]) + "\n";
    }
  }
  return text;
}

std::string report_text(const ordered_json& report) {
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
  text += "settings:\n";
  for (const ordered_json& line : report["settings"]) {
    text += "  " + text_of(line["key"]) + " = " + text_of(line["value"]) + "  (" +
            text_of(line["source"]) + ")\n";
  }
  return text;
}

Status doctor(const DoctorFlags& flags) {
  PAVO_ASSIGN_OR_RETURN(const Config config, load_settings(flags.settings));
  const Registry registry = Registry::discover(registry_options(config));
  const ordered_json report = report_json(registry, config);
  return StandardOutput().write(
      flags.json ? report.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n"
                 : report_text(report));
}

}  // namespace

void add_doctor(CLI::App* app, Action* action) {
  CLI::App* command =
      app->add_subcommand("doctor", "show plugins, devices and settings, and what is wrong");
  const auto flags = std::make_shared<DoctorFlags>();
  command->add_flag("--json", flags->json, "as JSON");
  add_run_settings(command, &flags->settings);
  add_common_settings(command, &flags->settings);
  command->callback([flags, action] { *action = [flags] { return doctor(*flags); }; });
}

}  // namespace pavo::cli
