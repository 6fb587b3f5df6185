// Presents CUDA devices through the fake driver library while it lives.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

namespace pavo::test {

// A P100, a P40 and a V100 in one host. Ids: GPU-60000000-0000-..., GPU-61..., GPU-70...
inline constexpr char kMixedHost[] = R"({"version": 12040, "devices": [
  {"name": "Tesla V100-PCIE-16GB", "capability": 70, "uuid": "70", "pci": "0000:82:00.0"},
  {"name": "Tesla P100-PCIE-16GB", "capability": 60, "uuid": "60", "pci": "0000:03:00.0"},
  {"name": "Tesla P40", "capability": 61, "uuid": "61", "pci": "0000:04:00.0",
   "memory": 25669140480}]})";

inline std::string fake_uuid(const std::string& start) {
  const std::string hex = start + std::string(32 - start.size(), '0');
  return "GPU-" + hex.substr(0, 8) + "-" + hex.substr(8, 4) + "-" + hex.substr(12, 4) + "-" +
         hex.substr(16, 4) + "-" + hex.substr(20);
}

class FakeCuda {
 public:
  explicit FakeCuda(const std::string& json) {
    ::setenv("PAVO_FAKE_CUDA", json.c_str(), 1);
    // The fake plugins list the same devices.
    std::string ids;
    const auto host = nlohmann::json::parse(json, nullptr, false);
    for (const auto& device : host.value("devices", nlohmann::json::array())) {
      ids += fake_uuid(device.value("uuid", "")) + ",";
    }
    ::setenv("PAVO_FAKE_DEVICES", ids.c_str(), 1);
  }
  FakeCuda(const FakeCuda&) = delete;
  FakeCuda& operator=(const FakeCuda&) = delete;
  ~FakeCuda() {
    ::unsetenv("PAVO_FAKE_CUDA");
    ::unsetenv("PAVO_FAKE_DEVICES");
  }

  static std::filesystem::path library() {
    return std::filesystem::path(PAVO_FAKES_DIR) / "fake_cuda_driver.so";
  }
};

}  // namespace pavo::test
