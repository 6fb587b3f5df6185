// Caps of a card that is not there, from a file "key = value" (TOML), as plugins/*/profiles has
// them.
#pragma once

#include <memory>
#include <string>

#include "core/device.h"
#include "core/status.h"

namespace pavo::conformance {

// kInvalidFile names what is wrong.
Result<std::unique_ptr<ValueList>> read_profile(const std::string& file);

}  // namespace pavo::conformance
