// A plugin with options and an opened device, reached through plugin.h alone.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "pavo/plugin.h"

namespace pavo::test {

// One way to run the op tests.
struct BackendConfig {
  std::string path;                            // of the plugin
  std::map<std::string, std::string> options;  // as text
  std::string label;                           // "pavo_cpu_reference_1": for test names
  bool open_device = true;                     // false: only what needs no device
  const pavo_values* caps = nullptr;           // instead of the device's
};

void PrintTo(const BackendConfig& config, std::ostream* out);  // NOLINT: GoogleTest's name

// From PAVO_TEST_PLUGINS, "path[,option=value]...[;path...]"; without it the CPU plugin, once with
// its reference kernels only and once with all.
const std::vector<BackendConfig>& backend_configs();

class Backend {
 public:
  // Loads, creates and opens the first device. Throws StatusError with the plugin's message, or
  // std::runtime_error if it finds no device.
  explicit Backend(const BackendConfig& config);
  ~Backend();
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;

  const pavo_plugin_api& api() const { return *api_; }
  pavo_plugin* plugin() const { return plugin_; }
  pavo_device* device() const { return device_; }
  const pavo_values* caps() const { return caps_ != nullptr ? caps_ : info_.caps; }

  // Names of the kernels of an op as the text of the option force_variant lists them; empty if the
  // plugin has no such list.
  std::vector<std::string> variants(const std::string& op) const;

 private:
  void create(const BackendConfig& config);
  void open();
  std::string option_text(const std::string& key) const;

  const pavo_plugin_api* api_ = nullptr;
  pavo_plugin* plugin_ = nullptr;
  pavo_device* device_ = nullptr;
  pavo_device_info info_{};
  const pavo_values* caps_ = nullptr;
};

// What the plugins are given; it counts.
const pavo_host_api* host_api();
// Bytes that plugins hold of the memory that the host gave them.
int64_t live_host_bytes();
// The n-th allocation from now finds no memory; 0: none does any more.
void fail_host_alloc(int64_t n);
// True if it has been reached.
bool host_alloc_failed();

// A call that did not return PAVO_OK.
class StatusError : public std::runtime_error {
 public:
  StatusError(int32_t status, const std::string& text) : std::runtime_error(text), code(status) {}
  const int32_t code;
};

// Throws StatusError with the message if code is not PAVO_OK.
void require_ok(int32_t code, const pavo_error& error, const char* what);

inline pavo_error empty_error() {
  pavo_error error{};
  error.struct_size = sizeof error;
  return error;
}

}  // namespace pavo::test
