// What `pavo doctor` tells, as JSON; the text is made from the JSON, so that both say the same.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "core/config.h"
#include "core/registry.h"

namespace pavo::cli {

// Loads each ready plugin to list its devices and options, and has it check what is set of them.
nlohmann::ordered_json doctor_json(const Registry& registry, const Config& config);
std::string doctor_text(const nlohmann::ordered_json& report);

}  // namespace pavo::cli
