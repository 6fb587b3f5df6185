#include "kernels/host/instance.h"

#include <algorithm>

#include <cuda_runtime_api.h>

#include "pavo/plugin_helpers.h"

#include "kernels/host/cublas.h"
#include "kernels/host/error.h"

namespace pavo::cuda {
namespace {

// f32 units of an SM, from the throughput table of the CUDA programming guide.
int32_t f32_units(int32_t compute_capability) {
  switch (compute_capability) {
    case 60:
    case 70:
    case 72:
    case 75:
    case 80:
      return 64;
    default:
      return 128;
  }
}

Caps device_caps(const PluginInfo& info, const cudaDeviceProp& properties) {
  Caps caps;
  caps.compute_capability = 10 * properties.major + properties.minor;
  caps.sm_count = properties.multiProcessorCount;
  caps.memory_bytes = static_cast<int64_t>(properties.totalGlobalMem);
  caps.shared_bytes_per_block = std::min<int64_t>(
      info.facts.shared_bytes_per_block, static_cast<int64_t>(properties.sharedMemPerBlockOptin));
  caps.l2_bytes = properties.l2CacheSize;
  // kHz, two transfers a clock, bits.
  caps.bandwidth_bytes_per_s =
      2.0 * 1e3 * properties.memoryClockRate * properties.memoryBusWidth / 8.0;
  caps.f32_flops = 2.0 * 1e3 * properties.clockRate * properties.multiProcessorCount *
                   f32_units(caps.compute_capability);
  // Virtual GPUs hide their clocks.
  const Caps& typical = info.facts.typical;
  caps.bandwidth_bytes_per_s =
      caps.bandwidth_bytes_per_s > 0 ? caps.bandwidth_bytes_per_s : typical.bandwidth_bytes_per_s;
  caps.f32_flops = caps.f32_flops > 0 ? caps.f32_flops : typical.f32_flops;
  return caps;
}

}  // namespace

std::string uuid_text(const char* bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      text += '-';
    }
    const auto byte = static_cast<unsigned char>(bytes[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace pavo::cuda

std::deque<pavo::cuda::DeviceEntry>& pavo_plugin::devices() {
  std::call_once(enumerated_, [this] { enumerate(); });
  return devices_;
}

void pavo_plugin::enumerate() {
  int count = 0;
  int driver_version = 0;
  if (cudaDriverGetVersion(&driver_version) != cudaSuccess ||
      cudaGetDeviceCount(&count) != cudaSuccess) {
    cudaGetLastError();  // no driver, an old one, or no device: nothing to serve
    return;
  }
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    add_device(ordinal, driver_version);
  }
}

void pavo_plugin::add_device(int ordinal, int driver_version) {
  using namespace std::string_view_literals;
  cudaDeviceProp properties = {};
  if (cudaGetDeviceProperties(&properties, ordinal) != cudaSuccess) {
    cudaGetLastError();
    return;  // a card that fell off the bus; the others may be well
  }
  const int32_t capability = 10 * properties.major + properties.minor;
  const bool by_sass = info_.sass_runs_on(capability);
  const bool by_ptx = options_.any_device && info_.ptx_runs_on(capability) &&
                      driver_version >= info_.toolkit_version;
  if (!by_sass && !by_ptx) {
    return;
  }
  pavo::cuda::DeviceEntry& entry = devices_.emplace_back();
  entry.ordinal = ordinal;
  entry.id = pavo::cuda::uuid_text(properties.uuid.bytes);
  entry.name = properties.name;
  entry.caps = pavo::cuda::device_caps(info_, properties);
  pavo::cuda::CapsList& list = entry.list;
  list.add(PAVO_CAP_ARCH, "sm_" + std::to_string(capability));
  list.add(PAVO_CAP_NAME, std::string_view(entry.name));
  list.add(PAVO_CAP_COMPUTE_CAPABILITY, int64_t{capability});
  list.add(PAVO_CAP_SM_COUNT, int64_t{entry.caps.sm_count});
  list.add(PAVO_CAP_MEMORY_BYTES, entry.caps.memory_bytes);
  list.add(PAVO_CAP_SHARED_BYTES_PER_BLOCK, entry.caps.shared_bytes_per_block);
  list.add(PAVO_CAP_BANDWIDTH, entry.caps.bandwidth_bytes_per_s);
  list.add(PAVO_CAP_F32_FLOPS, entry.caps.f32_flops);
  list.add(pavo::cuda::kCapL2Bytes, entry.caps.l2_bytes);
  list.add(pavo::cuda::kCapDriverVersion, int64_t{driver_version});
  list.add(pavo::cuda::kCapCode, by_sass ? "sass"sv : "ptx"sv);
  if (options_.cublas) {
    list.add(pavo::cuda::kCapCublas, pavo::cuda::CublasLibrary::find(capability).major());
  }
}

pavo::cuda::DeviceEntry* pavo_plugin::find_device(std::string_view id, pavo_error* error) {
  std::string known;
  for (pavo::cuda::DeviceEntry& entry : devices()) {
    if (entry.id == id) {
      return &entry;
    }
    known += (known.empty() ? "" : ", ") + entry.id;
  }
  pavo::sdk::fail(
      error,
      PAVO_ERROR_NO_DEVICE,
      "%s has no device '%.*s'; it could serve: %s",
      std::string(info_.id).c_str(),
      static_cast<int>(std::min<size_t>(id.size(), 64)),
      id.data(),
      known.empty() ? "none" : known.c_str());
  return nullptr;
}
