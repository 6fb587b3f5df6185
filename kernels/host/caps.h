// Caps between their two forms: the ABI's key-value list, and the numbers that kernels look at.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "pavo/plugin.h"

#include "kernels/host/plugin_info.h"

namespace pavo::cuda {

// Keys of the CUDA plugins' own, besides those of plugin.h.
constexpr std::string_view kCapL2Bytes = "l2_bytes";              // int
constexpr std::string_view kCapDriverVersion = "driver_version";  // int, 12040 for CUDA 12.4
constexpr std::string_view kCapCode = "code";  // string: "sass", or "ptx" if the driver compiles
constexpr std::string_view kCapCublas = "cublas";  // int: major version that was opened, 0: none

// Reads a list; what it leaves out is the plugin's typical board. Numbers that make no sense (not
// positive) are PAVO_ERROR_INVALID_ARGUMENT. Shared memory is cut to the plugin's chip.
int32_t read_caps(const PluginInfo& info, const pavo_values* values, Caps* out, pavo_error* error);

// A list with its own memory. Not copied or moved, since the items point into it.
class CapsList {
 public:
  CapsList() = default;
  CapsList(const CapsList&) = delete;
  CapsList& operator=(const CapsList&) = delete;

  void add(std::string_view key, int64_t value);
  void add(std::string_view key, double value);
  void add(std::string_view key, std::string_view value);
  // Valid until the next add.
  const pavo_values& values();

 private:
  pavo_value& append(std::string_view key, int32_t type);

  std::deque<std::string> texts_;
  std::deque<pavo_value> items_;
  std::vector<const pavo_value*> pointers_;
  pavo_values values_{};
};

}  // namespace pavo::cuda
