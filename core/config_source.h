// What each source of settings says, as raw values: the file reader, the environment reader and the
// command line's. Inside of core/config only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/config.h"

namespace pavo {

// std::monostate: a value of a kind that no setting has (a date, a table, a mixed list).
using RawValue =
    std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<std::string>>;

struct RawSetting {
  std::string key;  // dotted
  RawValue value;
  std::string source;    // "user file /home/a/x.toml:12"
  bool untyped = false;  // the value is a text that stands for any type
  // In a file, of the key and of the value, from 1; 0 elsewhere.
  uint32_t key_column = 0;
  uint32_t value_column = 0;
};

struct RawSource {
  ConfigOrigin origin = ConfigOrigin::kDefault;
  std::vector<RawSetting> settings;
  std::vector<std::string> errors;  // whole lines, with the source
  std::vector<std::string> warnings;
};

// origin: kSystemFile or kUserFile. A path that is "" or, unless required, does not exist gives no
// settings.
RawSource read_config_file(ConfigOrigin origin, const std::string& path, bool required);
RawSource read_config_environment(const std::map<std::string, std::string>& environment);
RawSource read_config_arguments(const std::vector<ConfigArgument>& arguments);

// For messages: "'text'", "12", "a list", "true".
std::string raw_text(const RawValue& value);
// The value as the text of a plugin's option, true and false as 1 and 0; nothing for lists and the
// like.
std::optional<std::string> option_text(const RawSetting& raw);

}  // namespace pavo
