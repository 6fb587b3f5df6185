#include "core/plugin_options.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include "pavo/plugin_helpers.h"

#include "core/plugin_call.h"
#include "core/text.h"

namespace pavo {
namespace {

using sdk::view;

Result<OptionValue> convert(const pavo_option_info& info, const std::string& text) {
  OptionValue value;
  value.key = std::string(view(info.key));
  value.type = info.type;
  value.string_value = text;
  char* end = nullptr;
  errno = 0;
  if (info.type == PAVO_VALUE_INT) {
    value.int_value = text == "true"    ? 1
                      : text == "false" ? 0
                                        : std::strtoll(text.c_str(), &end, 10);
  } else if (info.type == PAVO_VALUE_FLOAT) {
    value.float_value = std::strtod(text.c_str(), &end);
  }
  if (end != nullptr && (*end != '\0' || end == text.c_str() || errno != 0)) {
    return Status(
        Code::kInvalidArgument,
        "option '" + value.key + "': expected a number (" + std::string(view(info.text)) +
            "), got '" + text + "'");
  }
  return value;
}

}  // namespace

Result<std::span<const pavo_option_info* const>> options_of(const pavo_plugin_api* api) {
  const pavo_option_info* const* infos = nullptr;
  uint32_t count = 0;
  PAVO_RETURN_IF_ERROR(call_plugin(
      api, "options", [&](pavo_error* error) { return api->options(&infos, &count, error); }));
  return std::span(infos, count);
}

const pavo_option_info* find_option(
    std::span<const pavo_option_info* const> infos, const std::string& key) {
  const auto found = std::find_if(
      infos.begin(), infos.end(), [&](const pavo_option_info* i) { return view(i->key) == key; });
  return found == infos.end() ? nullptr : *found;
}

Result<std::vector<OptionValue>> convert_options(
    const pavo_plugin_api* api, const std::map<std::string, std::string>& options) {
  std::vector<OptionValue> values;
  if (options.empty()) {
    return values;
  }
  const std::string plugin(view(api->id));
  PAVO_ASSIGN_OR_RETURN(const auto infos, options_of(api));
  for (const auto& [key, text] : options) {
    const pavo_option_info* found = find_option(infos, key);
    if (found == nullptr) {
      std::vector<std::string> known;
      for (const pavo_option_info* info : infos) {
        known.emplace_back(view(info->key));
      }
      const std::string nearest = nearest_name(key, known);
      return Status(
          Code::kInvalidArgument,
          "plugin " + plugin + " has no option '" + key + "'" +
              "; it has: " + (known.empty() ? "none" : join(known, ", ")) +
              (nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
    }
    Result<OptionValue> value = convert(*found, text);
    if (!value.ok()) {
      return value.status().with_context("plugin " + plugin);
    }
    values.push_back(std::move(value).value());
  }
  return values;
}

}  // namespace pavo
