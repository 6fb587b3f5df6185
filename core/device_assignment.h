// The middle of Registry::discover: gives every device to one plugin and tries the plugins, again
// and again until each device has a plugin that works on it, or none.
#pragma once

#include "core/plugin_probe.h"
#include "core/registry.h"

namespace pavo {

// Fills the grid, and devices, state, reason, probe and warnings of the plugins that are not
// rejected. report->driver has been read.
void assign_devices(const RegistryOptions& options, RegistryReport* report);

// Tries an idle plugin: everything but its devices.
ProbeResult probe_without_devices(const RegistryOptions& options, const PluginEntry& entry);

}  // namespace pavo
