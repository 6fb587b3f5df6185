#include "core/cuda_driver.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>
#include <type_traits>
#include <utility>

#include "core/dynamic_library.h"
#include "core/host_api.h"
#include "core/system.h"

namespace pavo {
namespace {

constexpr int kMaxDevices = 1024;

// The driver's numbers that are used here (its ABI is stable; no toolkit header is needed).
constexpr int kSuccess = 0;
constexpr int kErrorStubLibrary = 34;
constexpr int kErrorNoDevice = 100;
constexpr int kErrorSystemDriverMismatch = 803;
constexpr int kAttributeComputeMode = 20;
constexpr int kAttributeCapabilityMajor = 75;
constexpr int kAttributeCapabilityMinor = 76;

struct Uuid {
  unsigned char bytes[16];
};

struct Functions {
  int (*init)(unsigned flags) = nullptr;
  int (*driver_version)(int* version) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device_get)(int* device, int ordinal) = nullptr;
  int (*device_name)(char* name, int size, int device) = nullptr;
  int (*device_uuid)(Uuid* uuid, int device) = nullptr;
  int (*device_memory)(size_t* bytes, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*device_pci_id)(char* text, int size, int device) = nullptr;
  int (*error_name)(int error, const char** name) = nullptr;
};

class Driver {
 public:
  // False if the library cannot be used; *fault then says why.
  bool open(const std::filesystem::path& file, std::string* fault) {
    const Result<DynamicLibrary> library = DynamicLibrary::open(file);
    if (!library.ok()) {
      *fault = library.status().message();
      return false;
    }
    const char* missing = nullptr;
    const auto bind = [&](auto* function, const char* name) {
      using Function = std::remove_pointer_t<std::remove_pointer_t<decltype(function)>>;
      *function = library->function<Function>(name);
      missing = *function == nullptr && missing == nullptr ? name : missing;
    };
    bind(&call_.init, "cuInit");
    bind(&call_.driver_version, "cuDriverGetVersion");
    bind(&call_.device_count, "cuDeviceGetCount");
    bind(&call_.device_get, "cuDeviceGet");
    bind(&call_.device_name, "cuDeviceGetName");
    bind(&call_.device_uuid, "cuDeviceGetUuid");
    bind(&call_.device_memory, "cuDeviceTotalMem_v2");
    bind(&call_.device_attribute, "cuDeviceGetAttribute");
    bind(&call_.device_pci_id, "cuDeviceGetPCIBusId");
    bind(&call_.error_name, "cuGetErrorName");
    if (missing != nullptr) {
      *fault = std::string("it does not export ") + missing;
    }
    return missing == nullptr;
  }

  void read(CudaDriver* out) const {
    // bind() has filled in every function, or nobody calls read().
    call_.driver_version(&out->version);  // NOLINT(clang-analyzer-core.CallAndMessage)
    if (const int code = call_.init(0); code != kSuccess) {
      out->absence = code == kErrorNoDevice ? "the driver sees no device" : init_text(code);
      out->present = code == kErrorNoDevice;
      return;
    }
    out->present = true;
    int count = 0;
    if (const int code = call_.device_count(&count); code != kSuccess) {
      out->absence = "the driver cannot count its devices: " + error_text(code);
      return;
    }
    for (int i = 0; i < std::min(count, kMaxDevices); ++i) {
      if (auto device = read_device(i, &out->problems)) {
        out->devices.push_back(std::move(*device));
      }
    }
    if (out->devices.empty()) {
      out->absence =
          count > 0 ? "none of the driver's devices could be read" : "the driver sees no device";
    }
  }

 private:
  std::string error_text(int code) const {
    const char* name = nullptr;
    const bool known = call_.error_name(code, &name) == kSuccess && name != nullptr;
    return known ? printable(name, 80) : "CUDA error " + std::to_string(code);
  }

  std::string init_text(int code) const {
    std::string text = "cuInit failed: " + error_text(code);
    if (code == kErrorStubLibrary) {
      text += "; this is the toolkit's stub, take it out of LD_LIBRARY_PATH";
    } else if (code == kErrorSystemDriverMismatch) {
      text += "; the kernel module and the library are of different versions, reboot";
    }
    return text;
  }

  // Nothing if the device cannot be named or its code chosen; smaller gaps are only noted.
  std::optional<CudaDevice> read_device(int index, std::vector<std::string>* problems) const {
    const auto worked = [&](int code, const char* what) {
      if (code != kSuccess) {
        problems->push_back(
            "device " + std::to_string(index) + ": " + what + " failed: " + error_text(code));
      }
      return code == kSuccess;
    };
    CudaDevice device;
    int handle = 0;
    int major = 0;
    int minor = 0;
    Uuid uuid = {};
    if (!worked(call_.device_get(&handle, index), "cuDeviceGet") ||
        !worked(call_.device_uuid(&uuid, handle), "cuDeviceGetUuid") ||
        !worked(
            call_.device_attribute(&major, kAttributeCapabilityMajor, handle),
            "cuDeviceGetAttribute") ||
        !worked(
            call_.device_attribute(&minor, kAttributeCapabilityMinor, handle),
            "cuDeviceGetAttribute")) {
      return std::nullopt;
    }
    device.capability = major * 10 + minor;
    device.id = uuid_text(uuid);
    std::array<char, 256> text = {};
    const auto read_text = [&](int code, const char* what) {
      text.back() = '\0';
      return worked(code, what) ? printable(text.data()) : std::string();
    };
    device.name = read_text(
        call_.device_name(text.data(), static_cast<int>(text.size()), handle), "cuDeviceGetName");
    text.fill('\0');
    device.pci_id = read_text(
        call_.device_pci_id(text.data(), static_cast<int>(text.size()), handle),
        "cuDeviceGetPCIBusId");
    if (device.name.empty()) {
      device.name = "CUDA device " + capability_text(device.capability);
    }
    size_t memory = 0;
    if (worked(call_.device_memory(&memory, handle), "cuDeviceTotalMem")) {
      device.memory_bytes = static_cast<int64_t>(memory);
    }
    int mode = 0;
    if (worked(
            call_.device_attribute(&mode, kAttributeComputeMode, handle), "cuDeviceGetAttribute")) {
      device.compute_mode = static_cast<ComputeMode>(mode);
    }
    return device;
  }

  static std::string uuid_text(const Uuid& uuid) {
    std::string text = "GPU-";
    char hex[3] = {};
    for (size_t i = 0; i < sizeof uuid.bytes; ++i) {
      std::snprintf(hex, sizeof hex, "%02x", uuid.bytes[i]);
      text += (i == 4 || i == 6 || i == 8 || i == 10) ? "-" : "";
      text += hex;
    }
    return text;
  }

  Functions call_;
};

std::filesystem::path library_to_open(const std::filesystem::path& wish) {
  if (!wish.empty()) {
    return wish;
  }
  return trusted_environment("PAVO_CUDA_DRIVER").value_or("libcuda.so.1");
}

}  // namespace

std::string capability_text(int32_t capability) {
  return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

CudaDriver read_cuda_driver(const std::filesystem::path& library) {
  CudaDriver result;
  const std::filesystem::path file = library_to_open(library);
  const bool by_name = library.empty() && file == "libcuda.so.1";
  result.library = file.string();
  if (!by_name && !file.is_absolute()) {
    result.absence = "PAVO_CUDA_DRIVER: expected an absolute path, got " + file.string();
    return result;
  }
  Driver driver;
  if (std::string fault; !driver.open(file, &fault)) {
    result.absence = "no NVIDIA driver: " + fault;
    return result;
  }
  driver.read(&result);
  // The driver's own order is fastest first unless CUDA_DEVICE_ORDER says otherwise.
  std::stable_sort(
      result.devices.begin(), result.devices.end(), [](const CudaDevice& a, const CudaDevice& b) {
        return a.pci_id < b.pci_id;
      });
  for (size_t i = 0; i < result.devices.size(); ++i) {
    result.devices[i].ordinal = static_cast<int32_t>(i);
  }
  return result;
}

}  // namespace pavo
