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
  // Plugin id, or "auto": every plugin that serves a device here, the CPU last.
  std::string backend = "auto";
  // Device ids; empty: all. Their order is the rank.
  std::vector<std::string> devices;
  // Options by plugin id, as text; converted by the types that the plugin states.
  std::map<std::string, std::map<std::string, std::string>> plugin_options;
};

// What was named is opened or the call fails with kNoBackend and what there is instead; nothing is
// replaced silently. The CPU plugin, if there is one, always comes last as the fallback, unless
// devices were named without it.
Result<std::vector<std::unique_ptr<Device>>> open_devices(
    const Registry& registry, const BackendRequest& request);

// Text options as typed ones. kInvalidArgument names the key, what it takes and what it got.
Result<std::vector<OptionValue>> convert_options(
    const pavo_plugin_api* api, const std::map<std::string, std::string>& options);

}  // namespace pavo
