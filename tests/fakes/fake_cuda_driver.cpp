// A driver library that is none: presents the devices of the JSON in PAVO_FAKE_CUDA.
//   {"version": 12040, "init": 0, "count": 0,
//    "devices": [{"name": "Tesla P40", "capability": 61, "uuid": "<32 hex digits>",
//                 "memory": 25769803776, "pci": "0000:01:00.0", "mode": 0, "fails":
//                 "cuDeviceGetName"}]}
// "init" and "count" are the codes of those calls; "fails" names the call that returns 999.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include <nlohmann/json.hpp>

#define FAKE_CUDA extern "C" __attribute__((visibility("default"))) int

namespace {

using nlohmann::json;

constexpr int kInvalidValue = 1;
constexpr int kUnknown = 999;

// Read anew each time, so that one test process can change it.
json config() {
  const char* text = std::getenv("PAVO_FAKE_CUDA");
  json value = json::parse(text == nullptr ? "{}" : text, nullptr, false);
  return value.is_object() ? value : json::object();
}

json device_at(int device) {
  const json all = config().value("devices", json::array());
  return device >= 0 && static_cast<size_t>(device) < all.size() ? all[static_cast<size_t>(device)]
                                                                 : json::object();
}

bool fails(int device, const char* call) {
  return device_at(device).value("fails", "") == call;
}

int copy_text(const std::string& text, char* out, int size) {
  if (size < 1) {
    return kInvalidValue;
  }
  const size_t count = std::min(text.size(), static_cast<size_t>(size) - 1);
  std::memcpy(out, text.data(), count);
  out[count] = '\0';
  return 0;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the driver's names.
FAKE_CUDA cuInit(unsigned) {
  return config().value("init", 0);
}

FAKE_CUDA cuDriverGetVersion(int* version) {
  *version = config().value("version", 12040);
  return 0;
}

FAKE_CUDA cuDeviceGetCount(int* count) {
  *count = static_cast<int>(config().value("devices", json::array()).size());
  return config().value("count", 0);
}

FAKE_CUDA cuDeviceGet(int* device, int ordinal) {
  *device = ordinal;
  return fails(ordinal, "cuDeviceGet") ? kUnknown : 0;
}

FAKE_CUDA cuDeviceGetName(char* name, int size, int device) {
  return fails(device, "cuDeviceGetName")
             ? kUnknown
             : copy_text(device_at(device).value("name", "Fake"), name, size);
}

FAKE_CUDA cuDeviceGetUuid(unsigned char* uuid, int device) {
  std::string hex = device_at(device).value("uuid", "");
  hex.resize(32, '0');
  for (size_t i = 0; i < 16; ++i) {
    uuid[i] = static_cast<unsigned char>(std::strtol(hex.substr(2 * i, 2).c_str(), nullptr, 16));
  }
  return fails(device, "cuDeviceGetUuid") ? kUnknown : 0;
}

FAKE_CUDA cuDeviceTotalMem_v2(size_t* bytes, int device) {
  *bytes = device_at(device).value("memory", size_t{16} << 30);
  return fails(device, "cuDeviceTotalMem_v2") ? kUnknown : 0;
}

FAKE_CUDA cuDeviceGetAttribute(int* value, int attribute, int device) {
  const int capability = device_at(device).value("capability", 0);
  switch (attribute) {
    case 20:
      *value = device_at(device).value("mode", 0);
      break;
    case 75:
      *value = capability / 10;
      break;
    case 76:
      *value = capability % 10;
      break;
    default:
      return kInvalidValue;
  }
  return fails(device, "cuDeviceGetAttribute") ? kUnknown : 0;
}

FAKE_CUDA cuDeviceGetPCIBusId(char* text, int size, int device) {
  return fails(device, "cuDeviceGetPCIBusId")
             ? kUnknown
             : copy_text(device_at(device).value("pci", ""), text, size);
}

FAKE_CUDA cuGetErrorName(int error, const char** name) {
  *name = error == kUnknown ? "CUDA_ERROR_UNKNOWN" : "CUDA_ERROR_FAKE";
  return 0;
}
// NOLINTEND(readability-identifier-naming)
