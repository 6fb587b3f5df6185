// Which NVIDIA devices this machine has, asked of the driver library alone: no toolkit is needed,
// and without a driver there are simply no devices.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pavo {

// Values are the driver's.
enum class ComputeMode : int32_t {
  kDefault = 0,
  kExclusiveThread = 1,
  kProhibited = 2,
  kExclusiveProcess = 3,
};

struct CudaDevice {
  int32_t ordinal = 0;  // in PCI order, as nvidia-smi counts; for display only
  std::string id;       // "GPU-<uuid>": stable, and the same that plugins use
  std::string name;
  int32_t capability = 0;    // 61
  int64_t memory_bytes = 0;  // 0: the driver did not say
  std::string pci_id;        // "0000:3b:00.0"; empty: the driver did not say
  ComputeMode compute_mode = ComputeMode::kDefault;
};

struct CudaDriver {
  bool present = false;  // the library was opened and initialised
  std::string library;   // what was opened, or tried
  int32_t version = 0;   // 12040: the newest CUDA that the driver speaks; 0: unknown
  std::string absence;   // one line: why there is no driver or no device; empty if there is one
  std::vector<CudaDevice> devices;
  std::vector<std::string> problems;  // what could not be read; the rest is still right
};

// library: another file in place of libcuda.so.1, absolute; empty: PAVO_CUDA_DRIVER (ignored under
// elevated privileges), else the system's. The library stays loaded. Initialising a real driver
// takes 50 to 300 ms.
CudaDriver read_cuda_driver(const std::filesystem::path& library = {});

// "6.1" for 61.
std::string capability_text(int32_t capability);

}  // namespace pavo
