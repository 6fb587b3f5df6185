// The copy queue: batches of 2-D regions, each direction on a stream of its own.
#pragma once

#include <cstdint>

#include "pavo/plugin.h"

#include "kernels/host/device.h"
#include "kernels/host/timeline.h"

namespace pavo::cuda {

// As copy of the ABI. Regions between buffers, and host memory that is pinned, are queued. Pageable
// host memory goes through pinned double buffers, and a batch with such a region is done, waits
// included, when the call returns: use PAVO_MEMORY_HOST buffers where that matters.
int32_t copy_regions(
    pavo_device* device,
    const pavo_copy_region* regions,
    uint32_t count,
    const Fences& fences,
    pavo_error* error);

}  // namespace pavo::cuda
