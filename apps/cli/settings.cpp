#include "apps/cli/settings.h"

#include <chrono>
#include <filesystem>

#include "core/log.h"
#include "core/plugin_guard.h"
#include "core/text.h"

namespace pavo::cli {

namespace {

// An option whose value is the setting `key`; help and type come from the schema.
void add_setting(
    CLI::App* command, const std::string& names, const char* key, SettingFlags* flags) {
  const ConfigKey* entry = find_config_key(key);
  const std::string shown = names.substr(names.rfind(',') + 1);
  const bool is_list = config_type_text(*entry) == "list of texts";
  const auto store = [flags, key, shown](const std::vector<std::string>& values) {
    flags->arguments.push_back({key, values, shown});
  };
  CLI::Option* option =
      command->add_option_function<std::vector<std::string>>(names, store, entry->help);
  option->expected(1)->type_name(is_list ? "TEXT" : config_type_text(*entry));
  option->multi_option_policy(
      is_list ? CLI::MultiOptionPolicy::TakeAll : CLI::MultiOptionPolicy::TakeLast);
}

// name: one of the setting's choices.
LogLevel log_level_of(const std::string& name) {
  return name == "debug"  ? LogLevel::kDebug
         : name == "info" ? LogLevel::kInfo
         : name == "warn" ? LogLevel::kWarn
         : name == "off"  ? LogLevel::kOff
                          : LogLevel::kError;
}

}  // namespace

void add_common_settings(CLI::App* command, SettingFlags* flags) {
  command->add_option("--config", flags->config_file, "settings file instead of the user's")
      ->type_name("FILE");
  add_setting(command, "--plugin-path", "plugin.path", flags);
  command
      ->add_option_function<std::vector<std::string>>(
          "--plugin-option",
          [flags](const std::vector<std::string>& values) {
            for (const std::string& value : values) {
              const size_t equals = std::min(value.find('='), value.size());
              const std::string text = equals < value.size() ? value.substr(equals + 1) : "";
              flags->arguments.push_back(
                  {"plugin." + value.substr(0, equals), {text}, "--plugin-option"});
            }
          },
          "an option of a plugin, as cpu.reference=1")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("ID.KEY=VALUE");
  command
      ->add_option_function<std::vector<std::string>>(
          "--set",
          [flags](const std::vector<std::string>& values) {
            for (const std::string& value : values) {
              const size_t equals = std::min(value.find('='), value.size());
              const std::string text = equals < value.size() ? value.substr(equals + 1) : "";
              flags->arguments.push_back({value.substr(0, equals), {text}, "--set"});
            }
          },
          "any setting of docs/config.md, as backends.deny=sm_61,cpu")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("KEY=VALUE");
  command->add_flag_callback(
      "--no-probe",
      [flags] {
        flags->arguments.push_back({"probe", {"false"}, "--no-probe"});
      },
      "do not try plugins in a child process first");
  CLI::Option* verbose = command->add_flag_callback(
      "--verbose,-v",
      [flags] {
        flags->arguments.push_back({"log_level", {"debug"}, "--verbose"});
      },
      "write all messages to standard error");
  command
      ->add_flag_callback(
          "--quiet,-q",
          [flags] {
            flags->quiet = true;
            flags->arguments.push_back({"log_level", {"error"}, "--quiet"});
          },
          "write only errors to standard error")
      ->excludes(verbose);
}

void add_run_settings(CLI::App* command, SettingFlags* flags) {
  add_setting(command, "-c,--context", "context", flags);
  add_setting(command, "--backend", "backend", flags);
  add_setting(command, "--device", "devices", flags);
  add_setting(command, "--kv-type", "kv_type", flags);
  add_setting(command, "--place", "place", flags);
  add_setting(command, "--fallback", "fallback", flags);
  add_setting(command, "-t,--threads", "threads", flags);
}

Result<Config> load_settings(const SettingFlags& flags) {
  ConfigInputs inputs = process_config_inputs(flags.config_file);
  inputs.command_line = flags.arguments;
  PAVO_ASSIGN_OR_RETURN(Config config, load_config(inputs));
  set_log_level(log_level_of(config.log_level.value));
  for (const std::string& warning : config.warnings) {
    log_warn(warning);
  }
  return config;
}

void watch_plugins(const Config& config) {
  if (config.hang_timeout_s.value > 0) {
    watch_hangs(std::chrono::seconds(config.hang_timeout_s.value));
  }
}

BackendRequest backend_request(const Config& config) {
  BackendRequest request;
  request.backend = config.backend.value;
  request.devices = config.devices.value;
  for (const PluginOption& option : config.plugin_options) {
    request.plugin_options[option.plugin][option.key] = option.value;
    request.option_sources[option.plugin + "." + option.key] = option.source;
  }
  return request;
}

RegistryOptions registry_options(const Config& config) {
  RegistryOptions options;
  std::vector<std::string> environment;
  for (const Setting<std::string>& place : config.plugin_path) {
    if (place.origin == ConfigOrigin::kCommandLine) {
      // What a user types is meant from where he stands; files and variables must be absolute.
      std::error_code error;
      const std::filesystem::path path = std::filesystem::absolute(place.value, error);
      options.paths.command_line.push_back(error ? place.value : path.string());
    } else if (place.origin == ConfigOrigin::kEnvironment) {
      environment.push_back(place.value);
    } else {
      options.paths.config.push_back(place.value);
    }
  }
  options.paths.environment = join(environment, ":");
  options.backend = config.backend.value;
  options.policy.allow = config.backends_allow.value;
  options.policy.deny = config.backends_deny.value;
  options.policy.rank = config.backends_rank.value;
  options.policy.require = config.backends_require.value;
  options.probe = config.probe.value;
  options.probe_timeout = std::chrono::milliseconds(config.probe_timeout_ms.value);
  options.cache_folder = config.cache_dir.value;
  return options;
}

}  // namespace pavo::cli
