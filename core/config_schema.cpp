// The list of settings: name, type, range, default and help of each, and the reference made of it.
#include <algorithm>
#include <array>
#include <cctype>

#include "pavo/quant.h"

#include "core/config.h"
#include "core/overloaded.h"
#include "core/placement.h"

namespace pavo {

namespace {

// Types that K/V pages can have, in the order of quant.h.
constexpr std::array kKvTypes = {
    PAVO_TYPE_F32,
    PAVO_TYPE_F16,
    PAVO_TYPE_BF16,
    PAVO_TYPE_Q8_0,
    PAVO_TYPE_Q8_KV,
    PAVO_TYPE_Q6_0,
    PAVO_TYPE_Q5_0,
    PAVO_TYPE_Q5_1,
    PAVO_TYPE_Q4_0,
    PAVO_TYPE_Q4_1,
    PAVO_TYPE_IQ4_NL};

int32_t kv_type_of(std::string_view text) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  const auto* found = std::find_if(kKvTypes.begin(), kKvTypes.end(), [&lower](int32_t type) {
    return lower == pavo_type_name(type);
  });
  return found == kKvTypes.end() ? PAVO_TYPE_NONE : *found;
}

std::string check_kv_type(const std::string& text) {
  if (kv_types_of(text)) {
    return "";
  }
  std::string names;
  for (const int32_t type : kKvTypes) {
    names += (names.empty() ? "" : ", ") + std::string(pavo_type_name(type));
  }
  return "expected K or K,V, each one of " + names + "; got '" + text + "'";
}

std::string check_place(const std::string& text) {
  return parse_place_rule(text).status().message();
}

std::string check_not_empty(const std::string& text) {
  return text.empty() ? "expected a text, got nothing" : "";
}

const std::array kSchema = {
    ConfigKey{
        .name = "plugin.path",
        .field = &Config::plugin_path,
        .fallback = "",
        .help = "folders (or files) to look for plugins in, before those beside the program",
        .check = check_not_empty,
        .separator = ':'},
    ConfigKey{
        .name = "backend",
        .field = &Config::backend,
        .fallback = "auto",
        .help =
            "backend that runs the model, the CPU helping out; never replaced silently. `auto`: "
            "all, the best first",
        .check = check_not_empty},
    ConfigKey{
        .name = "devices",
        .field = &Config::devices,
        .fallback = "",
        .help = "backends to use, no others, in order of preference; none given: all. Each must be "
                "there",
        .check = check_not_empty},
    ConfigKey{
        .name = "backends.allow",
        .field = &Config::backends_allow,
        .fallback = "",
        .help = "backends that may be used, the CPU's too; none given: all",
        .check = check_not_empty},
    ConfigKey{
        .name = "backends.deny",
        .field = &Config::backends_deny,
        .fallback = "",
        .help = "backends that are never used; wins over backends.allow",
        .check = check_not_empty},
    ConfigKey{
        .name = "backends.rank",
        .field = &Config::backends_rank,
        .fallback = "",
        .help =
            "order of preference, best first; also decides which of two plugins serves a device. "
            "What is not named comes after, the CPU last",
        .check = check_not_empty},
    ConfigKey{
        .name = "backends.require",
        .field = &Config::backends_require,
        .fallback = "",
        .help = "each must be used, or the program ends with exit code 4 and what there is instead",
        .check = check_not_empty},
    ConfigKey{
        .name = "kv_type",
        .field = &Config::kv_type,
        .fallback = "f16",
        .help = "element type of the K/V cache, or two of them: K,V",
        .check = check_kv_type},
    ConfigKey{
        .name = "context",
        .field = &Config::context,
        .fallback = "0",
        .help =
            "most tokens a sequence may have; 0: 4096, or what the job needs if that is more, but "
            "never more than the model was trained for",
        .max = int64_t{1} << 27},
    ConfigKey{
        .name = "threads",
        .field = &Config::threads,
        .fallback = "0",
        .help = "threads of the CPU plugin, the same as plugin.cpu.threads; 0: its own choice",
        .max = 4096},
    ConfigKey{
        .name = "fallback",
        .field = &Config::fallback,
        .fallback = "warn",
        .help = "what to do when a node cannot run where the rest does",
        .choices = "allow,warn,error"},
    ConfigKey{
        .name = "place",
        .field = &Config::place,
        .fallback = "",
        .help = "rules PATTERN=DEVICE that pin nodes by name; the first match wins",
        .check = check_place,
        .separator = ';'},
    ConfigKey{
        .name = "probe",
        .field = &Config::probe,
        .fallback = "true",
        .help = "try each plugin in a child process before it is loaded"},
    ConfigKey{
        .name = "probe_timeout_ms",
        .field = &Config::probe_timeout_ms,
        .fallback = "10000",
        .help = "a probe that takes longer is ended and its plugin skipped",
        .min = 1,
        .max = 600000},
    ConfigKey{
        .name = "hang_timeout_s",
        .field = &Config::hang_timeout_s,
        .fallback = "600",
        .help =
            "the program ends when one call into a plugin takes longer, and the next start names "
            "the plugin; 0: never",
        .max = 86400},
    ConfigKey{
        .name = "log_level",
        .field = &Config::log_level,
        .fallback = "warn",
        .help = "least important message that is written to standard error",
        .choices = "debug,info,warn,error,off"},
    ConfigKey{
        .name = "cache_dir",
        .field = &Config::cache_dir,
        .fallback = "$XDG_CACHE_HOME/pavo",
        .help = "folder for what may be deleted at any time, as results of probes"},
};

std::string with_spaces(const char* choices) {
  std::string text;
  for (const char* c = choices; *c != '\0'; ++c) {
    text += *c == ',' ? std::string(", ") : std::string(1, *c);
  }
  return text;
}

}  // namespace

std::optional<KvTypes> kv_types_of(std::string_view text) {
  const size_t comma = text.find(',');
  const KvTypes types = {
      kv_type_of(text.substr(0, comma)),
      kv_type_of(comma == std::string_view::npos ? text : text.substr(comma + 1))};
  if (types.k == PAVO_TYPE_NONE || types.v == PAVO_TYPE_NONE) {
    return std::nullopt;
  }
  return types;
}

std::span<const ConfigKey> config_schema() {
  return kSchema;
}

const ConfigKey* find_config_key(std::string_view name) {
  const auto* found = std::find_if(
      kSchema.begin(), kSchema.end(), [name](const ConfigKey& key) { return name == key.name; });
  return found == kSchema.end() ? nullptr : found;
}

std::string config_environment_name(const ConfigKey& key) {
  std::string name = "PAVO_";
  for (const char* c = key.name; *c != '\0'; ++c) {
    name += *c == '.' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(*c)));
  }
  return name;
}

std::string config_type_text(const ConfigKey& key) {
  return std::visit(
      Overloaded{
          [](Setting<bool> Config::*) -> std::string { return "true or false"; },
          [&key](Setting<int64_t> Config::*) {
            return "integer " + std::to_string(key.min) + ".." + std::to_string(key.max);
          },
          [&key](Setting<std::string> Config::*) {
            return key.choices != nullptr ? "one of " + with_spaces(key.choices) : "text";
          },
          [](Setting<std::vector<std::string>> Config::*) -> std::string {
            return "list of texts";
          },
          [](std::vector<Setting<std::string>> Config::*) -> std::string {
            return "list of texts";
          }},
      key.field);
}

std::string config_reference() {
  std::string text =
      "# Settings\n\n"
      "Made by `pavo config docs`; a test fails when it is out of date.\n\n"
      "A setting is taken from the first of these that has it: an option of the command line, an\n"
      "environment variable, the user file (`$XDG_CONFIG_HOME/pavo/config.toml`, usually\n"
      "`~/.config/pavo/config.toml`; `--config FILE` or `PAVO_CONFIG` names another), the system\n"
      "file (`/etc/pavo/config.toml`), the default. Only `plugin.path` adds up: the folders of\n"
      "all sources are searched in that order. `pavo config show` prints every value and where\n"
      "it came from; `pavo config check` tells every fault, also of the options of plugins, and\n"
      "`pavo config check FILE` those of one file. An unknown key in a file is an error; so is a\n"
      "value out of range.\n\n"
      "| Key in a file | Variable | Type | Default | Meaning |\n"
      "| --- | --- | --- | --- | --- |\n";
  for (const ConfigKey& key : kSchema) {
    const std::string fallback = *key.fallback != '\0' ? "`" + std::string(key.fallback) + "`" : "";
    text += "| `" + std::string(key.name) + "` | `" + config_environment_name(key) + "` | " +
            config_type_text(key) + " | " + fallback + " | " + key.help + " |\n";
  }
  text +=
      "\nIn a variable the elements of a list are separated by commas; by colons in\n"
      "`PAVO_PLUGIN_PATH`, by semicolons in `PAVO_PLACE`. `--set KEY=VALUE` sets any key for one\n"
      "run, with the text that a variable would have.\n\n"
      "## Naming backends\n\n"
      "A backend is a plugin on a device. `backend`, `devices` and `backends.*` name backends by\n"
      "any of these, with a `*` at the end for any rest; `pavo doctor` lists them all:\n\n"
      "| Named by | For example |\n"
      "| --- | --- |\n"
      "| plugin | `cuda-sm61`, `cpu`, `cuda-*`; the kinds `cuda`, `cpu`, `other` |\n"
      "| architecture of the device | `sm_61`, `sm_7*` |\n"
      "| id of the device | `GPU-8a4c...` as `nvidia-smi -L` prints it, `cpu` |\n\n"
      "```toml\n"
      "[backends]\n"
      "rank = [\"sm_70\", \"sm_60\"]      # the V100 before the P100, then the rest\n"
      "deny = [\"GPU-8a4c*\"]            # the card that drives the screen\n"
      "require = [\"sm_70\"]             # do not start without it\n"
      "```\n\n"
      "## Options of plugins\n\n"
      "A table `[plugin.<id>]` holds options of one plugin, which checks them itself; `pavo "
      "doctor`\n"
      "lists them. On the command line: `--plugin-option cpu.threads=4`; in the environment:\n"
      "`PAVO_PLUGIN_OPTIONS=cpu.threads=4,cpu.reference=1`.\n\n"
      "```toml\n"
      "kv_type = \"q8_0\"\n"
      "context = 8192\n"
      "place = [\"blk.*.ffn_*=cpu\"]\n\n"
      "[plugin]\n"
      "path = [\"/opt/pavo/plugins\"]\n\n"
      "[plugin.cpu]\n"
      "threads = 4\n"
      "```\n";
  return text;
}

}  // namespace pavo
