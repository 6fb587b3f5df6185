// What a device can do, as numbers: the parsed form of the ABI's caps, read from a device or from a
// profile file. Predicates and cost estimates look at nothing else, so they need no GPU.
#pragma once

#include <cstdint>

namespace pavo::cuda {

struct Caps {
  int32_t compute_capability = 0;  // 61
  int32_t sm_count = 0;
  int64_t memory_bytes = 0;
  // Usable by one block, opt-in included; never more than the plugin's own chip has, although the
  // device may offer more.
  int64_t shared_bytes_per_block = 0;
  int64_t l2_bytes = 0;
  double bandwidth_bytes_per_s = 0;  // copy bandwidth
  double f32_flops = 0;
};

// Facts of the chip that a plugin is made for, as a value: host code is compiled once for all
// plugins and does not see the Arch structs.
struct ArchFacts {
  int32_t compute_capability;
  int64_t shared_bytes_per_block;
  int64_t shared_bytes_per_sm;
  int32_t registers_per_sm;
  int32_t threads_per_sm;
  int32_t blocks_per_sm;
  Caps typical;  // stands in for caps that a profile leaves out
};

}  // namespace pavo::cuda
