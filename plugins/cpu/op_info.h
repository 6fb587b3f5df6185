// The op set of ops.inc as data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace pavo::cpu {

struct OpInfo {
  std::string_view name;
  int32_t op;
  uint32_t inputs_min;
  uint32_t inputs_max;
  uint32_t outputs_min;
  uint32_t outputs_max;
  size_t params_bytes;
};

std::span<const OpInfo> all_ops();

// NULL for an op that ops.inc did not know when this plugin was built.
const OpInfo* find_op(int32_t op);
const OpInfo* find_op(std::string_view name);

}  // namespace pavo::cpu
