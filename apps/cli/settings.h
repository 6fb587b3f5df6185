// Options of the command line that are settings (core/config.h), and the settings themselves once
// every source is read.
#pragma once

#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "core/backends.h"
#include "core/config.h"
#include "core/registry.h"
#include "core/status.h"

namespace pavo::cli {

// Filled by the parser; must stay where it is until parsing is done.
struct SettingFlags {
  std::string config_file;
  std::vector<ConfigArgument> arguments;
  bool quiet = false;
};

// --config, --plugin-path, --plugin-option, --no-probe, --verbose, --quiet.
void add_common_settings(CLI::App* command, SettingFlags* flags);
// --backend, --device, --kv-type, -c, --threads, --fallback, --place.
void add_run_settings(CLI::App* command, SettingFlags* flags);

// Reads all sources, sets the log level, logs the warnings.
Result<Config> load_settings(const SettingFlags& flags);

// Has a plugin that hangs end the program, as the setting hang_timeout_s says.
void watch_plugins(const Config& config);

// What the settings say about plugins.
RegistryOptions registry_options(const Config& config);
BackendRequest backend_request(const Config& config);

}  // namespace pavo::cli
