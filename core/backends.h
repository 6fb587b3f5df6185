// From what the user asked for to opened devices, in rank order.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/registry.h"
#include "core/status.h"

namespace pavo {

struct BackendRequest {
  // A selector (core/backend_policy.h), or "auto": every plugin that serves a device here.
  std::string backend = "auto";
  // Selectors; empty: all. Their order is the rank.
  std::vector<std::string> devices;
  // Options by plugin id, as text; converted by the types that the plugin states.
  std::map<std::string, std::map<std::string, std::string>> plugin_options;
  // For messages, by "<plugin>.<option>": where an option was set. May lack any.
  std::map<std::string, std::string> option_sources;
  // Plugins that have the option `timings` get 1, unless plugin_options says otherwise.
  bool node_timings = false;
};

// The devices in order of preference: as `devices` names them, else by the registry's policy, the
// CPU plugin last as the fallback unless it is ranked. What was named or required is opened or the
// call fails with kNoBackend and what there is instead; nothing is replaced silently. "auto" goes
// on, with a warning, without a plugin that cannot be loaded.
Result<std::vector<std::unique_ptr<Device>>> open_devices(
    const Registry& registry, const BackendRequest& request);

// What open_devices would open, in order, and how it would fail.
Result<std::vector<BackendName>> choose_backends(
    const Registry& registry, const BackendRequest& request);

// An instance of a ready or idle plugin with the request's options for it. kInvalidArgument: it
// does not take them; the message names the source.
Result<std::shared_ptr<PluginInstance>> create_instance(
    const Registry& registry, const BackendRequest& request, const std::string& id);

// Has every plugin check its options. kInvalidArgument: one line for each plugin that does not take
// them, with the source. *unchecked: a line for each plugin that is not here or cannot be loaded.
Status check_plugin_options(
    const Registry& registry, const BackendRequest& request, std::vector<std::string>* unchecked);

}  // namespace pavo
