// What distinguishes one CUDA plugin from another, as data: the host side is compiled once.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/common/caps.h"
#include "kernels/common/kernel.h"

namespace pavo::cuda {

struct PluginInfo {
  std::string_view id;       // "cuda-sm61"
  std::string_view version;  // "0.1.0"
  bool has_sass;             // machine code of facts.compute_capability
  bool has_ptx;              // PTX of the same
  int32_t toolkit_version;   // 12040
  ArchFacts facts;
  std::vector<KernelList> families;  // in the order of kernels.inc

  // Machine code runs on the same major version with at least the same minor one.
  bool sass_runs_on(int32_t compute_capability) const {
    return has_sass && compute_capability / 10 == facts.compute_capability / 10 &&
           compute_capability >= facts.compute_capability;
  }
  // PTX runs on everything later, if the driver can compile it (driver_version >= toolkit_version).
  bool ptx_runs_on(int32_t compute_capability) const {
    return has_ptx && compute_capability >= facts.compute_capability;
  }
  bool runs_on(int32_t compute_capability) const {
    return sass_runs_on(compute_capability) || ptx_runs_on(compute_capability);
  }
};

}  // namespace pavo::cuda
