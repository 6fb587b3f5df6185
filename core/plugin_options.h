// Options of a plugin: what it has, and texts of a user turned into what it takes.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/status.h"

namespace pavo {

// The options that the plugin has, as it tells them; they live as long as the plugin is loaded.
Result<std::span<const pavo_option_info* const>> options_of(const pavo_plugin_api* api);

// NULL if there is none of that key.
const pavo_option_info* find_option(
    std::span<const pavo_option_info* const> infos, const std::string& key);

// Text options as typed ones. kInvalidArgument names the key, what it takes and what it got.
Result<std::vector<OptionValue>> convert_options(
    const pavo_plugin_api* api, const std::map<std::string, std::string>& options);

}  // namespace pavo
