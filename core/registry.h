// Which plugins there are, which of them serve this machine's devices, and why the others do not.
// discover() only looks; load() brings one plugin into the process.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend_policy.h"
#include "core/cuda_driver.h"
#include "core/device_select.h"
#include "core/plugin_loader.h"
#include "core/plugin_note.h"
#include "core/plugin_probe.h"
#include "core/plugin_search.h"
#include "core/status.h"
#include "core/system.h"

namespace pavo {

struct RegistryOptions {
  PluginPaths paths = default_plugin_paths();
  BackendPolicy policy;
  // A selector that the user named: of the CUDA backends it alone takes part; a plugin that it
  // names serves every device that its code runs on. "auto": each device goes to the plugin that is
  // ranked first, else to the one that suits it best.
  std::string backend = "auto";
  // Stands in for libcuda.so.1, absolute; empty: PAVO_CUDA_DRIVER, else the system's.
  std::filesystem::path cuda_driver;
  // Ask the driver for its devices even if no CUDA plugin could use them (for pavo doctor).
  bool always_read_devices = false;
  // Try each plugin in a child process before it is used.
  bool probe = true;
  std::chrono::milliseconds probe_timeout{5000};
  std::filesystem::path probe_program;  // empty: pavo-probe next to the running program
  // Where probe results are remembered; empty: nowhere.
  std::filesystem::path cache_folder = user_cache_directory();
};

enum class PluginState : int32_t {
  kReady,     // serves at least one device of this machine
  kIdle,      // nothing is wrong with it, but no device here is its own
  kRejected,  // will not be loaded
};

const char* plugin_state_name(PluginState state);

// A CUDA device and a plugin for such devices.
struct DevicePluginPair {
  size_t device = 0;  // index in RegistryReport::driver.devices
  size_t plugin = 0;  // index in RegistryReport::plugins
  CodeMatch match = CodeMatch::kRefused;
  bool chosen = false;
  bool tested = false;  // the plugin's self-test passed on this device
  std::string text;     // one line: why it is chosen, or not
};

// One file that was found.
struct PluginEntry {
  std::filesystem::path path;
  size_t place = 0;  // index in RegistryReport::places
  PluginState state = PluginState::kRejected;
  std::string reason;  // one line: why it is idle or rejected
  // What was read; nothing if the file is no plugin or may not be read.
  std::optional<PluginFileFacts> facts;
  // Ids of the devices that are its own. kind=cuda: those that it was chosen for. Other kinds:
  // those that it listed when it was probed, less those of an earlier plugin.
  std::vector<std::string> devices;
  std::optional<ProbeResult> probe;   // nothing: it was not tried
  bool faulty = false;                // rejected for a fault of its own, not by the user's wish
  bool suspect = false;               // it took the program down last time: no cached probe counts
  std::vector<std::string> warnings;  // what is odd about it, but no reason to reject it

  const std::string& id() const;  // empty without facts
  BackendName backend() const;    // what is known without a device
};

struct RegistryReport {
  std::vector<SearchPlace> places;
  std::vector<PluginEntry> plugins;  // in search order
  bool devices_read = false;         // false: no plugin needed them, driver is empty
  CudaDriver driver;
  std::vector<DevicePluginPair> grid;  // every device with every CUDA plugin that is not rejected
  double discover_ms = 0;

  // One line for each thing that a user should hear of without asking: faulty plugins, warnings,
  // places that were named but not searched.
  std::vector<std::string> notices() const;

  // The plugin that answers to this id, NULL if every one of that id was rejected.
  const PluginEntry* find(std::string_view id) const;
  // The plugin on a device: its architecture as the driver says, else as the probe saw.
  BackendName backend(const PluginEntry& plugin, const std::string& device_id) const;
  // True if the plugin may use the device. A plugin that is not kind=cuda and was not tried may use
  // all that no other plugin owns.
  bool may_use(const PluginEntry& plugin, std::string_view device_id) const;
};

class Registry {
 public:
  static Registry discover(const RegistryOptions& options);

  const RegistryReport& report() const { return report_; }
  const BackendPolicy& policy() const { return options_.policy; }

  // Loads a ready or idle plugin. kNoBackend says why it cannot be had and what there is instead.
  // Any thread; the result lives until the process ends.
  Result<const LoadedPlugin*> load(std::string_view id) const;

 private:
  RegistryOptions options_;
  RegistryReport report_;
};

}  // namespace pavo
