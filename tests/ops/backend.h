// A plugin with options and an opened device, reached through plugin.h alone.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "pavo/plugin.h"

namespace pavo::test {

// One way to run the op tests.
struct BackendConfig {
  std::string path;                            // of the plugin
  std::map<std::string, std::string> options;  // as text
  std::string label;                           // "pavo_cpu_reference_1": for test names
};

void PrintTo(const BackendConfig& config, std::ostream* out);  // NOLINT: GoogleTest's name

// From PAVO_TEST_PLUGINS, "path[,option=value]...[;path...]"; without it the CPU plugin, once with
// its reference kernels only and once with all.
const std::vector<BackendConfig>& backend_configs();

class Backend {
 public:
  // Loads, creates and opens the first device. Throws std::runtime_error with the plugin's message.
  explicit Backend(const BackendConfig& config);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const pavo_plugin_api& api() const { return *api_; }
  pavo_plugin* plugin() const { return plugin_; }
  pavo_device* device() const { return device_; }
  const pavo_values* caps() const { return info_.caps; }

  // Names of the kernels of an op as the text of the option force_variant lists them; empty if the
  // plugin has no such list.
  std::vector<std::string> variants(const std::string& op) const;

 private:
  void create(const BackendConfig& config);
  std::string option_text(const std::string& key) const;

  const pavo_plugin_api* api_ = nullptr;
  pavo_plugin* plugin_ = nullptr;
  pavo_device* device_ = nullptr;
  pavo_device_info info_{};
};

// Bytes that plugins hold of the memory that the host gave them.
int64_t live_host_bytes();

// Throws std::runtime_error with the message if code is not PAVO_OK.
void require_ok(int32_t code, const pavo_error& error, const char* what);

inline pavo_error empty_error() {
  pavo_error error{};
  error.struct_size = sizeof error;
  return error;
}

}  // namespace pavo::test
