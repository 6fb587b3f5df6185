// The program's settings. Sources, strongest first: command line, PAVO_* environment, user file,
// system file, default; every value remembers which one it came from. docs/config.md, made from
// config_schema(), is the contract for users.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/status.h"

namespace pavo {

// Weakest first.
enum class ConfigOrigin : int32_t { kDefault, kSystemFile, kUserFile, kEnvironment, kCommandLine };

// A value and where it was set: "--kv-type", "PAVO_KV_TYPE", "user file /home/a/x.toml:12",
// "default".
template <typename T>
struct Setting {
  T value{};
  std::string source = "default";
  ConfigOrigin origin = ConfigOrigin::kDefault;
};

// An option of one plugin, passed on as text; the plugin itself knows its type and checks it.
// Booleans are 0 and 1.
struct PluginOption {
  std::string plugin;  // id, as "cpu"
  std::string key;
  std::string value;
  std::string source;
};

struct Config {
  // Places to look for plugins, of every source that names some, strongest source first.
  std::vector<Setting<std::string>> plugin_path;
  // Selectors of core/backend_policy.h.
  Setting<std::vector<std::string>> backends_allow;  // empty: all
  Setting<std::vector<std::string>> backends_deny;
  Setting<std::vector<std::string>> backends_rank;
  Setting<std::vector<std::string>> backends_require;
  Setting<std::string> backend;               // "auto" or a selector
  Setting<std::vector<std::string>> devices;  // selectors; empty: all
  Setting<std::string> kv_type;               // "K" or "K,V", names of pavo_type_name
  Setting<int64_t> context;                   // rows of K/V; 0: chosen for the job
  Setting<int64_t> threads;                   // of the CPU plugin; 0: its choice
  Setting<std::string> fallback;              // allow, warn, error
  Setting<std::vector<std::string>> place;    // of parse_place_rule, first match wins
  Setting<bool> probe;                        // try plugins in a child process first
  Setting<int64_t> probe_timeout_ms;
  Setting<int64_t> hang_timeout_s;  // of one call into a plugin; 0: none
  Setting<std::string> log_level;   // debug, info, warn, error, off
  Setting<std::string> cache_dir;   // "" if the system names no place for caches

  // One entry per plugin and key, the strongest source's; sorted by plugin, then key. `threads`
  // is in here too, as option "threads" of plugin "cpu".
  std::vector<PluginOption> plugin_options;
  // One line each, for the log: variables that look like a misspelt setting.
  std::vector<std::string> warnings;
};

// Element types (PAVO_TYPE_*) of K and V.
struct KvTypes {
  int32_t k;
  int32_t v;
};
// Of a text like kv_type's: "q8_0" is both, "q8_0,f16" is K, then V; upper or lower case. Nothing
// if a name is not a type that K/V pages can have.
std::optional<KvTypes> kv_types_of(std::string_view text);

// ---- Schema
// --------------------------------------------------------------------------------------

using ConfigField = std::variant<
    Setting<bool> Config::*,
    Setting<int64_t> Config::*,
    Setting<std::string> Config::*,
    Setting<std::vector<std::string>> Config::*,
    std::vector<Setting<std::string>> Config::*>;

struct ConfigKey {
  const char* name;      // in files: "plugin.path"
  ConfigField field;     // also decides the type
  const char* fallback;  // the default, as environment text
  const char* help;      // one line
  int64_t min = 0;       // of integers
  int64_t max = 0;
  // The allowed texts (of each element of a list), comma separated; null: any that `check` takes.
  const char* choices = nullptr;
  // Null, or says what is wrong with one text ("" if nothing): "expected ..., got ...".
  std::string (*check)(const std::string& text) = nullptr;
  char separator = ',';  // between a list's elements in an environment variable
};

std::span<const ConfigKey> config_schema();
// Null if there is none of that name.
const ConfigKey* find_config_key(std::string_view name);
// "PAVO_PLUGIN_PATH" for "plugin.path".
std::string config_environment_name(const ConfigKey& key);
// "integer 0..4096", "one of allow, warn, error", "list of texts".
std::string config_type_text(const ConfigKey& key);
// docs/config.md.
std::string config_reference();

// ---- Loading
// -------------------------------------------------------------------------------------

// A setting given on the command line.
struct ConfigArgument {
  std::string key;                  // as in the schema, or "plugin.<id>.<option>"
  std::vector<std::string> values;  // one, or a list's elements
  std::string option;               // for messages: "--kv-type"
};

struct ConfigInputs {
  std::vector<ConfigArgument> command_line;
  std::map<std::string, std::string> environment;  // whole; other variables are ignored
  std::string user_file;                           // a file that does not exist counts as empty
  std::string system_file;                         // likewise
  bool user_file_required = false;                 // it was named explicitly: it must exist
  std::string cache_dir;                           // default of cache_dir
};

// Environment, files and cache folder of this process. `file`: a path given with --config, else "";
// PAVO_CONFIG comes next, then $XDG_CONFIG_HOME/pavo/config.toml. /etc/pavo/config.toml always
// counts. Under elevated privileges the environment is not read.
ConfigInputs process_config_inputs(const std::string& file);

// Merges the sources. kInvalidArgument lists every unknown key (with the nearest valid name), wrong
// type and value out of range, with its source.
Result<Config> load_config(const ConfigInputs& inputs);

// Every value as text for people, in the schema's order, plugin options last.
struct ConfigLine {
  std::string key;
  std::string value;
  std::string source;
};
std::vector<ConfigLine> config_lines(const Config& config);

}  // namespace pavo
