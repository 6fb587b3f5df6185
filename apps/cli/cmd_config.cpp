// pavo config: the settings as they are, their faults, and their reference.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/cli/command.h"
#include "apps/cli/io.h"
#include "apps/cli/settings.h"

namespace pavo::cli {

namespace {

// Columns: key, value, source.
std::string table(const std::vector<ConfigLine>& lines) {
  size_t key_width = 0;
  size_t value_width = 0;
  for (const ConfigLine& line : lines) {
    key_width = std::max(key_width, line.key.size());
    value_width = std::max(value_width, std::min<size_t>(line.value.size(), 40));
  }
  std::string text;
  for (const ConfigLine& line : lines) {
    std::string row = line.key;
    row.resize(std::max(row.size(), key_width + 2), ' ');
    row += line.value;
    row.resize(std::max(row.size() + 2, key_width + value_width + 4), ' ');
    text += row + line.source + "\n";
  }
  return text;
}

struct ConfigFlags {
  SettingFlags settings;
  std::string file;
  bool no_plugins = false;
  bool json = false;
};

Status show(const ConfigFlags& flags) {
  PAVO_ASSIGN_OR_RETURN(const Config config, load_settings(flags.settings));
  const std::vector<ConfigLine> lines = config_lines(config);
  if (!flags.json) {
    return StandardOutput().write(table(lines));
  }
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const ConfigLine& line : lines) {
    json.push_back({{"key", line.key}, {"value", line.value}, {"source", line.source}});
  }
  return StandardOutput().write(
      json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
}

// One file alone, whatever else is set here; or what a run would use.
Result<Config> load_for_check(const ConfigFlags& flags) {
  if (flags.file.empty()) {
    return load_settings(flags.settings);
  }
  ConfigInputs inputs;
  inputs.user_file = flags.file;
  inputs.user_file_required = true;
  inputs.cache_dir = process_config_inputs("").cache_dir;
  inputs.command_line = flags.settings.arguments;
  return load_config(inputs);
}

Status check(const ConfigFlags& flags) {
  PAVO_ASSIGN_OR_RETURN(const Config config, load_for_check(flags));
  const BackendRequest request = backend_request(config);
  if (!flags.no_plugins && !request.plugin_options.empty()) {
    RegistryOptions options = registry_options(config);
    options.policy = {};  // whether options are right does not hang on what is wanted
    watch_plugins(config);
    std::vector<std::string> unchecked;
    const Status checked = check_plugin_options(Registry::discover(options), request, &unchecked);
    for (const std::string& line : unchecked) {
      note("note: " + line);
    }
    PAVO_RETURN_IF_ERROR(checked);
  }
  size_t set = 0;
  for (const ConfigLine& line : config_lines(config)) {
    set += line.source == "default" ? 0 : 1;
  }
  return StandardOutput().write(
      "no faults; " + std::to_string(set) + (set == 1 ? " setting is" : " settings are") +
      " not the default\n");
}

}  // namespace

void add_config(CLI::App* app, Action* action) {
  CLI::App* command = app->add_subcommand("config", "show or check the settings");
  command->require_subcommand(1);
  const auto flags = std::make_shared<ConfigFlags>();
  CLI::App* shown = command->add_subcommand("show", "print every setting with its source");
  shown->add_flag("--json", flags->json, "as JSON");
  CLI::App* checked = command->add_subcommand(
      "check", "tell every fault of the settings, also of the options of plugins");
  checked->add_option("FILE", flags->file, "check this file alone, not what a run here would use");
  checked->add_flag("--no-plugins", flags->no_plugins, "do not ask plugins about their options");
  for (CLI::App* each : {shown, checked}) {
    add_run_settings(each, &flags->settings);
    add_common_settings(each, &flags->settings);
  }
  shown->callback([flags, action] { *action = [flags] { return show(*flags); }; });
  checked->callback([flags, action] { *action = [flags] { return check(*flags); }; });
  command->add_subcommand("docs", "print the reference of all settings")->callback([action] {
    *action = [] { return StandardOutput().write(config_reference()); };
  });
}

}  // namespace pavo::cli
