// The fake runtime of an emulated plugin has the devices that the fake driver presents: those of
// the JSON in PAVO_FAKE_CUDA (fake_cuda_driver.cpp), so that both agree.
#include <cstdlib>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/fakes/cudart.h"

namespace {

using nlohmann::json;

__attribute__((constructor)) void present_devices() {
  const char* text = std::getenv("PAVO_FAKE_CUDA");
  const json host = json::parse(text == nullptr ? "{}" : text, nullptr, false);
  std::vector<pavo::fakes::FakeDevice> devices;
  if (host.is_object()) {
    for (const json& device : host.value("devices", json::array())) {
      const int capability = device.value("capability", 0);
      devices.push_back(
          {capability / 10,
           capability % 10,
           0,
           device.value("memory", size_t{16} << 30),
           device.value("uuid", "")});
    }
  }
  pavo::fakes::cudart::reset(devices, devices.empty() ? 0 : host.value("version", 12040));
}

}  // namespace
