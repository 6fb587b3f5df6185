// Merging of the sources: each gives raw values by key, weakest first, so that stronger ones
// overwrite. Faults are collected, so that one run shows all of them.
#include "core/config.h"

#include <algorithm>
#include <tuple>

#include "core/config_source.h"
#include "core/overloaded.h"
#include "core/text.h"

namespace pavo {

namespace {

using StringList = std::vector<std::string>;

std::string quoted(const std::string& text) {
  return "'" + text + "'";
}

std::string placed(const std::string& source, uint32_t column) {
  return column == 0 ? source : source + ":" + std::to_string(column);
}

std::string suggestion(const std::string& name) {
  StringList names;
  for (const ConfigKey& key : config_schema()) {
    names.emplace_back(key.name);
  }
  const std::string nearest = nearest_name(name, names);
  return nearest.empty() ? "; see docs/config.md" : "; did you mean " + quoted(nearest) + "?";
}

// Applies the values of one source to a Config.
class Merger {
 public:
  explicit Merger(Config* config) : config_(config) {}

  void apply(const RawSetting& raw);
  void apply_all(const RawSource& source);
  const StringList& errors() const { return errors_; }

 private:
  void fail(const RawSetting& raw, const std::string& text) {
    errors_.push_back(placed(raw.source, raw.value_column) + ": " + raw.key + ": " + text);
  }
  void fail_unknown(const RawSetting& raw) {
    errors_.push_back(
        placed(raw.source, raw.key_column) + ": unknown setting " + quoted(raw.key) +
        suggestion(raw.key));
  }
  // False, with an error, if the text is none that the key takes.
  bool check(const ConfigKey& key, const RawSetting& raw, const std::string& text);
  void apply_key(const ConfigKey& key, const RawSetting& raw);
  void apply_plugin_option(const RawSetting& raw);
  void set_plugin_option(PluginOption option);
  // Each stores the value in the field's type, or says what was expected.
  void store(Setting<bool>* field, const ConfigKey& key, const RawSetting& raw);
  void store(Setting<int64_t>* field, const ConfigKey& key, const RawSetting& raw);
  void store(Setting<std::string>* field, const ConfigKey& key, const RawSetting& raw);
  void store(Setting<StringList>* field, const ConfigKey& key, const RawSetting& raw);
  void store(std::vector<Setting<std::string>>* field, const ConfigKey& key, const RawSetting& raw);
  // The elements of a list key, split where the source is text.
  bool list_of(const ConfigKey& key, const RawSetting& raw, StringList* out);

  Config* config_;
  ConfigOrigin origin_ = ConfigOrigin::kDefault;  // of the source that is being applied
  StringList errors_;
};

bool Merger::check(const ConfigKey& key, const RawSetting& raw, const std::string& text) {
  if (key.choices != nullptr) {
    const StringList choices = split(key.choices, ',');
    if (std::find(choices.begin(), choices.end(), text) == choices.end()) {
      const std::string nearest = nearest_name(text, choices);
      fail(
          raw,
          "expected " + config_type_text(key) + ", got " + quoted(text) +
              (nearest.empty() ? "" : "; did you mean " + quoted(nearest) + "?"));
      return false;
    }
  }
  const std::string fault = key.check != nullptr ? key.check(text) : "";
  if (!fault.empty()) {
    fail(raw, fault);
  }
  return fault.empty();
}

void Merger::store(Setting<bool>* field, const ConfigKey& key, const RawSetting& raw) {
  const bool* given = std::get_if<bool>(&raw.value);
  const std::string* text = std::get_if<std::string>(&raw.value);
  const std::optional<bool> value = given != nullptr                 ? std::optional<bool>(*given)
                                    : text != nullptr && raw.untyped ? parse_bool(*text)
                                                                     : std::nullopt;
  if (!value) {
    fail(raw, "expected " + config_type_text(key) + ", got " + raw_text(raw.value));
    return;
  }
  *field = {*value, raw.source, origin_};
}

void Merger::store(Setting<int64_t>* field, const ConfigKey& key, const RawSetting& raw) {
  const int64_t* given = std::get_if<int64_t>(&raw.value);
  const std::string* text = std::get_if<std::string>(&raw.value);
  const std::optional<int64_t> value = given != nullptr ? std::optional<int64_t>(*given)
                                       : text != nullptr && raw.untyped ? parse_int(*text)
                                                                        : std::nullopt;
  if (!value || *value < key.min || *value > key.max) {
    fail(raw, "expected " + config_type_text(key) + ", got " + raw_text(raw.value));
    return;
  }
  *field = {*value, raw.source, origin_};
}

void Merger::store(Setting<std::string>* field, const ConfigKey& key, const RawSetting& raw) {
  const std::string* text = std::get_if<std::string>(&raw.value);
  if (text == nullptr) {
    fail(raw, "expected " + config_type_text(key) + ", got " + raw_text(raw.value));
    return;
  }
  if (check(key, raw, *text)) {
    *field = {*text, raw.source, origin_};
  }
}

bool Merger::list_of(const ConfigKey& key, const RawSetting& raw, StringList* out) {
  if (const auto* list = std::get_if<StringList>(&raw.value)) {
    *out = *list;
  } else if (const auto* text = std::get_if<std::string>(&raw.value); text && raw.untyped) {
    *out = split(*text, key.separator);
  } else {
    fail(raw, "expected " + config_type_text(key) + ", got " + raw_text(raw.value));
    return false;
  }
  return std::all_of(
      out->begin(), out->end(), [&](const std::string& text) { return check(key, raw, text); });
}

void Merger::store(Setting<StringList>* field, const ConfigKey& key, const RawSetting& raw) {
  StringList list;
  if (list_of(key, raw, &list)) {
    *field = {std::move(list), raw.source, origin_};
  }
}

void Merger::store(
    std::vector<Setting<std::string>>* field, const ConfigKey& key, const RawSetting& raw) {
  StringList list;
  if (!list_of(key, raw, &list)) {
    return;
  }
  // Sources come weakest first; this one's elements go before all earlier ones.
  std::vector<Setting<std::string>> merged;
  for (std::string& text : list) {
    merged.push_back({std::move(text), raw.source, origin_});
  }
  merged.insert(merged.end(), field->begin(), field->end());
  *field = std::move(merged);
}

void Merger::apply_key(const ConfigKey& key, const RawSetting& raw) {
  std::visit([&](auto field) { store(&(config_->*field), key, raw); }, key.field);
}

void Merger::set_plugin_option(PluginOption option) {
  auto& options = config_->plugin_options;
  const auto place = std::lower_bound(
      options.begin(), options.end(), option, [](const PluginOption& a, const PluginOption& b) {
        return std::tie(a.plugin, a.key) < std::tie(b.plugin, b.key);
      });
  if (place != options.end() && place->plugin == option.plugin && place->key == option.key) {
    *place = std::move(option);
  } else {
    options.insert(place, std::move(option));
  }
}

void Merger::apply_plugin_option(const RawSetting& raw) {
  const StringList parts = split(raw.key, '.');  // plugin, id, option
  const std::optional<std::string> value = option_text(raw);
  if (parts.size() != 3 || parts[1].empty() || parts[2].empty()) {
    fail_unknown(raw);
  } else if (!value) {
    fail(raw, "expected an integer, a number, a text, true or false; got " + raw_text(raw.value));
  } else {
    set_plugin_option({parts[1], parts[2], *value, raw.source});
  }
}

void Merger::apply(const RawSetting& raw) {
  if (const ConfigKey* key = find_config_key(raw.key)) {
    apply_key(*key, raw);
  } else if (raw.key.starts_with("plugin.")) {
    apply_plugin_option(raw);
  } else {
    fail_unknown(raw);
  }
}

void Merger::apply_all(const RawSource& source) {
  origin_ = source.origin;
  errors_.insert(errors_.end(), source.errors.begin(), source.errors.end());
  config_->warnings.insert(config_->warnings.end(), source.warnings.begin(), source.warnings.end());
  const auto names_threads = [](const RawSetting& raw) { return raw.key == "plugin.cpu.threads"; };
  for (const RawSetting& raw : source.settings) {
    apply(raw);
  }
  // `threads` and the plugin's option are one; the option wins within one source.
  const bool set_here =
      source.origin != ConfigOrigin::kDefault && config_->threads.origin == source.origin;
  if (set_here && std::none_of(source.settings.begin(), source.settings.end(), names_threads)) {
    set_plugin_option(
        {"cpu", "threads", std::to_string(config_->threads.value), config_->threads.source});
  }
  for (const PluginOption& option : config_->plugin_options) {
    const std::optional<int64_t> value = parse_int(option.value);
    if (option.plugin == "cpu" && option.key == "threads" && value) {
      config_->threads.value = *value;
      config_->threads.source = option.source;
    }
  }
}

}  // namespace

Result<Config> load_config(const ConfigInputs& inputs) {
  Config config;
  Merger merger(&config);
  for (const ConfigKey& key : config_schema()) {
    const bool is_cache = std::string_view(key.name) == "cache_dir";
    const bool is_list = *key.fallback == '\0';
    if (!is_list) {
      merger.apply({key.name, is_cache ? inputs.cache_dir : key.fallback, "default", true});
    }
  }
  merger.apply_all(read_config_file(ConfigOrigin::kSystemFile, inputs.system_file, false));
  merger.apply_all(
      read_config_file(ConfigOrigin::kUserFile, inputs.user_file, inputs.user_file_required));
  merger.apply_all(read_config_environment(inputs.environment));
  merger.apply_all(read_config_arguments(inputs.command_line));
  if (!merger.errors().empty()) {
    return Status(Code::kInvalidArgument, join(merger.errors(), "\n"));
  }
  return config;
}

std::vector<ConfigLine> config_lines(const Config& config) {
  std::vector<ConfigLine> lines;
  for (const ConfigKey& key : config_schema()) {
    const auto line = [&](std::string text, const std::string& source) {
      lines.push_back({key.name, std::move(text), source});
    };
    std::visit(
        Overloaded{
            [&](Setting<bool> Config::*field) {
              line((config.*field).value ? "true" : "false", (config.*field).source);
            },
            [&](Setting<int64_t> Config::*field) {
              line(std::to_string((config.*field).value), (config.*field).source);
            },
            [&](Setting<std::string> Config::*field) {
              line((config.*field).value, (config.*field).source);
            },
            [&](Setting<StringList> Config::*field) {
              line(join((config.*field).value, ", "), (config.*field).source);
            },
            [&](std::vector<Setting<std::string>> Config::*field) {
              for (const Setting<std::string>& place : config.*field) {
                line(place.value, place.source);
              }
              if ((config.*field).empty()) {
                line("", "default");
              }
            }},
        key.field);
  }
  for (const PluginOption& option : config.plugin_options) {
    lines.push_back({"plugin." + option.plugin + "." + option.key, option.value, option.source});
  }
  return lines;
}

}  // namespace pavo
