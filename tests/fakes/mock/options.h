// The options of the mock device, and those of the CPU plugin inside that pass through.
#pragma once

#include <cstdint>

#include "pavo/plugin.h"

namespace pavo::mock {

// As `options` of the table.
int32_t list_options(const pavo_option_info* const** out, uint32_t* count, pavo_error* error);

}  // namespace pavo::mock
