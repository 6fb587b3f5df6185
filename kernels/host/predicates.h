// The answer to "can this node run here, and how": pure, no device, no driver.
#pragma once

#include <cstdint>

#include "kernels/host/graph_copy.h"
#include "kernels/host/options.h"
#include "kernels/host/plugin_info.h"

namespace pavo::cuda {

// The first kernel of the tables that supports the node and that the options allow, with a filled
// verdict; NULL with a refusal. plan_create and query_nodes both ask here.
const Kernel* choose_kernel(
    const PluginInfo& info,
    const Options& options,
    const Caps& caps,
    const GraphCopy& graph,
    uint32_t node,
    pavo_verdict* verdict);

// As query_nodes of the ABI.
int32_t query_nodes(
    const PluginInfo& info,
    const Options& options,
    const pavo_values* caps,
    const pavo_graph* graph,
    pavo_verdict* const* verdicts,
    pavo_error* error);

}  // namespace pavo::cuda
