// The options of the CPU plugin, parsed and validated.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pavo/plugin.h"

namespace pavo::cpu {

struct Options {
  int32_t threads = 1;     // resolved: the caller's thread included, at least 1
  bool reference = false;  // only reference kernels
  std::string simd;        // best instruction set to use; "": as it is
  std::vector<std::pair<int32_t, std::string>> forced;  // op, kernel name: the only one allowed
  std::vector<int32_t> refused;                         // ops that are refused with REASON_POLICY
};

// For the table's `options`; static memory.
const pavo_option_info* const* option_infos(uint32_t* count);

// Fills *out. PAVO_ERROR_INVALID_ARGUMENT names the key, what was expected and what was found.
int32_t parse_options(const pavo_values* values, Options* out, pavo_error* error);

}  // namespace pavo::cpu
