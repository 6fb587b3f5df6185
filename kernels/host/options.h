// The options of a CUDA plugin, parsed and validated.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pavo/plugin.h"

#include "kernels/host/plugin_info.h"

namespace pavo::cuda {

struct Options {
  int64_t memory_budget_bytes = 0;  // of device memory, per device; 0: what the device has
  bool any_device = true;           // also devices that only PTX runs on
  bool graphs = true;               // replay captured CUDA graphs
  bool timings = false;             // measure each node; turns graphs off
  bool sync = false;                // wait after each node; turns graphs off
  bool recheck = false;             // ask supports() again at each launch
  bool cublas = false;              // open cuBLAS; no kernel needs it
  int64_t fail_alloc_at = 0;        // the n-th allocation fails, counted from 1; 0: none
  std::vector<std::pair<int32_t, std::string>> forced;  // op, kernel name: the only one allowed
  std::vector<int32_t> refused;                         // ops that are refused by policy
};

// Name of an op in ops.inc, "?" if unknown.
const char* op_name(int32_t op);

// For the table's `options`; static memory.
const pavo_option_info* const* option_infos(uint32_t* count);

// Fills *out. PAVO_ERROR_INVALID_ARGUMENT names the key, what was expected and what was found.
int32_t parse_options(
    const PluginInfo& info, const pavo_values* values, Options* out, pavo_error* error);

}  // namespace pavo::cuda
