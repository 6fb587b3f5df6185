// One small piece of real work, checked: what the probe runs before a device is trusted.
#pragma once

#include "pavo/plugin.h"

namespace pavo::cuda {

// [device] Adds two vectors through buffers, copies, a plan and a timeline, several times so that a
// captured graph is replayed, and compares every element; with the option cublas also a small
// matrix product. PAVO_ERROR_NODE_FAILED names the first wrong element.
int32_t self_test(pavo_device* device, pavo_error* error);

}  // namespace pavo::cuda
