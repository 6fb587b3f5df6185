// JSON out of files that nobody vouches for: no exceptions, no duplicate keys that hide each other.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/status.h"

namespace pavo::llm {

// kInvalidFile with `what` ("config.json") if the text is no JSON object, or if the object names
// one of its own keys twice.
Status parse_json_object(
    std::span<const std::byte> text, const std::string& what, nlohmann::json* out);

}  // namespace pavo::llm
