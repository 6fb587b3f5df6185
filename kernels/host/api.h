// The table that a CUDA plugin exports. One plugin a shared object, so there is one of each here.
#pragma once

#include "pavo/plugin.h"

#include "kernels/host/plugin_info.h"

namespace pavo::cuda {

// As pavo_plugin_query of the ABI, for the plugin that `info` describes. `info` lives for ever.
int32_t query_plugin(
    const PluginInfo& info,
    uint32_t abi_major,
    uint32_t host_min_minor,
    uint32_t host_max_minor,
    const pavo_host_api* host,
    const pavo_plugin_api** out,
    pavo_error* error);

}  // namespace pavo::cuda
