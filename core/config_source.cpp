// Reads the sources of settings. toml++ is used without exceptions and touched here alone.
#include "core/config_source.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

// Debian's library form of toml++ is built with exceptions; the headers alone do without.
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "core/overloaded.h"
#include "core/text.h"

namespace pavo {

namespace {

namespace fs = std::filesystem;

// A file of settings is small; anything larger is some other file.
constexpr uintmax_t kMaxFileBytes = 1 << 20;

RawValue raw_list(const toml::array& array) {
  std::vector<std::string> list;
  for (const toml::node& node : array) {
    const auto text = node.value_exact<std::string>();
    if (!text) {
      return std::monostate();
    }
    list.push_back(*text);
  }
  return list;
}

RawValue raw_value(const toml::node& node) {
  switch (node.type()) {
    case toml::node_type::boolean:
      return node.as_boolean()->get();
    case toml::node_type::integer:
      return node.as_integer()->get();
    case toml::node_type::floating_point:
      return node.as_floating_point()->get();
    case toml::node_type::string:
      return node.as_string()->get();
    case toml::node_type::array:
      return raw_list(*node.as_array());
    default:
      return std::monostate();
  }
}

// True if keys of the schema, or options of a plugin, can stand in a table of this name.
bool is_known_table(const std::string& dotted) {
  const auto keys = config_schema();
  return (dotted.starts_with("plugin.") && dotted.find('.', 7) == std::string::npos) ||
         std::any_of(keys.begin(), keys.end(), [&](const ConfigKey& key) {
           return std::string_view(key.name).starts_with(dotted + ".");
         });
}

// Depth first, so that keys come out dotted; tables nest no deeper than the parser allows.
void flatten(
    const toml::table& table, const std::string& prefix, const std::string& name, RawSource* out) {
  for (const auto& [key, node] : table) {
    const std::string dotted = prefix + std::string(key.str());
    const toml::table* inner = node.as_table();
    if (inner != nullptr && inner->empty() && is_known_table(dotted)) {
      continue;  // all of it is commented out
    }
    if (inner != nullptr && !inner->empty()) {
      flatten(*inner, dotted + ".", name, out);
    } else {
      const auto& place = key.source().begin;
      const auto& value_place = node.source().begin;
      out->settings.push_back(
          {dotted,
           raw_value(node),
           name + ":" + std::to_string(place.line),
           false,
           place.column,
           value_place.line == place.line ? value_place.column : place.column});
    }
  }
}

// "" if it is a file worth parsing, else why not.
std::string file_fault(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (error) {
    return "cannot be read: " + error.message();
  }
  if (!fs::is_regular_file(status)) {
    return "expected a file of settings, got a folder or a special file";
  }
  const uintmax_t size = fs::file_size(path, error);
  if (error || size > kMaxFileBytes) {
    return "expected a file of settings of at most 1 MiB";
  }
  if (::faccessat(AT_FDCWD, path.c_str(), R_OK, AT_EACCESS) != 0) {
    return "cannot be read: " + std::error_code(errno, std::generic_category()).message();
  }
  return "";
}

}  // namespace

RawSource read_config_file(ConfigOrigin origin, const std::string& path, bool required) {
  RawSource out;
  out.origin = origin;
  std::error_code error;
  if (path.empty() || (!required && !fs::exists(path, error) && !error)) {
    return out;
  }
  const std::string label =
      (origin == ConfigOrigin::kUserFile ? "user file " : "system file ") + path;
  if (const std::string fault = file_fault(path); !fault.empty()) {
    out.errors.push_back(label + ": " + fault);
    return out;
  }
  const toml::parse_result parsed = toml::parse_file(path);
  if (!parsed) {
    const auto& place = parsed.error().source().begin;
    out.errors.push_back(
        label + ":" + std::to_string(place.line) + ":" + std::to_string(place.column) +
        ": not valid TOML: " + std::string(parsed.error().description()));
    return out;
  }
  flatten(parsed.table(), "", label, &out);
  return out;
}

RawSource read_config_environment(const std::map<std::string, std::string>& environment) {
  // Those that are no settings: the user file's name and the driver library are read elsewhere.
  std::vector<std::string> known = {"PAVO_CONFIG", "PAVO_CUDA_DRIVER", "PAVO_PLUGIN_OPTIONS"};
  RawSource out;
  out.origin = ConfigOrigin::kEnvironment;
  for (const ConfigKey& key : config_schema()) {
    known.push_back(config_environment_name(key));
    const auto found = environment.find(known.back());
    if (found != environment.end() && !found->second.empty()) {
      out.settings.push_back({key.name, found->second, known.back(), true});
    }
  }
  if (const auto found = environment.find("PAVO_PLUGIN_OPTIONS"); found != environment.end()) {
    for (const std::string& item : split(found->second, ',')) {
      const size_t equals = std::min(item.find('='), item.size());
      const std::string value = equals < item.size() ? item.substr(equals + 1) : "";
      out.settings.push_back({"plugin." + item.substr(0, equals), value, found->first, true});
    }
  }
  for (const auto& [variable, value] : environment) {
    if (!variable.starts_with("PAVO_") ||
        std::find(known.begin(), known.end(), variable) != known.end()) {
      continue;
    }
    // Other programs may use the prefix, so this is no error.
    if (const std::string nearest = nearest_name(variable, known); !nearest.empty()) {
      out.warnings.push_back(
          "environment variable " + variable + " is no setting; did you mean " + nearest + "?");
    }
  }
  return out;
}

RawSource read_config_arguments(const std::vector<ConfigArgument>& arguments) {
  RawSource out;
  out.origin = ConfigOrigin::kCommandLine;
  for (const ConfigArgument& argument : arguments) {
    const ConfigKey* key = find_config_key(argument.key);
    const std::string separator(1, key != nullptr ? key->separator : ',');
    out.settings.push_back({argument.key, join(argument.values, separator), argument.option, true});
  }
  return out;
}

std::string raw_text(const RawValue& value) {
  return std::visit(
      Overloaded{
          [](std::monostate) -> std::string { return "a value of another kind"; },
          [](bool flag) -> std::string { return flag ? "true" : "false"; },
          [](int64_t number) { return std::to_string(number); },
          [](double number) { return format_double(number); },
          [](const std::string& text) { return "'" + text + "'"; },
          [](const std::vector<std::string>&) -> std::string { return "a list"; }},
      value);
}

std::optional<std::string> option_text(const RawSetting& raw) {
  if (const auto* text = std::get_if<std::string>(&raw.value)) {
    const bool word = raw.untyped && (*text == "true" || *text == "false");
    return word ? std::to_string(static_cast<int>(*text == "true")) : *text;
  }
  if (const bool* flag = std::get_if<bool>(&raw.value)) {
    return std::to_string(static_cast<int>(*flag));
  }
  if (std::holds_alternative<int64_t>(raw.value) || std::holds_alternative<double>(raw.value)) {
    return raw_text(raw.value);
  }
  return std::nullopt;
}

}  // namespace pavo
