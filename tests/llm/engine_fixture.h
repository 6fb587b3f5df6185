// Engines on the plugins of this build. PAVO_TEST_BACKEND names the first plugin (default cpu),
// PAVO_TEST_OPTIONS its options as "key=value,key=value"; so the same tests run on a GPU machine.
#pragma once

#include <cstdlib>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/backends.h"
#include "core/registry.h"
#include "llm/engine.h"

namespace pavo::llm {

inline std::string environment_or(const char* name, const std::string& fallback) {
  const char* value = std::getenv(name);
  return value == nullptr ? fallback : std::string(value);
}

inline std::map<std::string, std::string> parse_test_options(const std::string& text) {
  std::map<std::string, std::string> options;
  std::stringstream stream(text);
  for (std::string item; std::getline(stream, item, ',');) {
    const size_t at = item.find('=');
    options[item.substr(0, at)] = at == std::string::npos ? "" : item.substr(at + 1);
  }
  return options;
}

inline const Registry& test_registry() {
  static const Registry kRegistry = [] {
    RegistryOptions options;
    options.backend = environment_or("PAVO_TEST_BACKEND", "cpu");
    return Registry::discover(options);
  }();
  return kRegistry;
}

// Devices of the backend under test; extra_options go to the first plugin.
inline std::vector<std::unique_ptr<Device>> test_devices(
    const std::map<std::string, std::string>& extra_options = {}) {
  BackendRequest request;
  request.backend = environment_or("PAVO_TEST_BACKEND", "cpu");
  auto& options = request.plugin_options[request.backend];
  options = parse_test_options(environment_or("PAVO_TEST_OPTIONS", ""));
  for (const auto& [key, value] : extra_options) {
    options[key] = value;
  }
  auto devices = open_devices(test_registry(), request);
  EXPECT_TRUE(devices.ok()) << devices.status().to_string();
  return devices.ok() ? std::move(devices).value() : std::vector<std::unique_ptr<Device>>();
}

// A first device that refuses ops by option, before a CPU that takes what is left.
inline std::vector<std::unique_ptr<Device>> refusing_devices(const std::string& refused_ops) {
  auto devices = test_devices({{"refuse", refused_ops}});
  if (devices.size() == 1) {  // the backend under test is the CPU itself: add a second instance
    auto plain = test_devices();
    devices.push_back(std::move(plain.front()));
  }
  return devices;
}

}  // namespace pavo::llm
