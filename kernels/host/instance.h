// An instance of a CUDA plugin: its options and the devices that it could serve.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "pavo/plugin.h"

#include "kernels/host/caps.h"
#include "kernels/host/options.h"
#include "kernels/host/plugin_info.h"

namespace pavo::cuda {

struct DeviceEntry {
  int ordinal;
  std::string id;  // "GPU-" and the UUID in lower case, 8-4-4-4-12, as the driver prints it
  std::string name;
  Caps caps;
  CapsList list;
};

// "GPU-01234567-89ab-cdef-0123-456789abcdef" of 16 bytes.
std::string uuid_text(const char* bytes);

}  // namespace pavo::cuda

struct pavo_plugin {
 public:
  pavo_plugin(
      const pavo::cuda::PluginInfo& info, const pavo_host_api& host, pavo::cuda::Options options)
      : info_(info), host_(host), options_(std::move(options)) {}

  const pavo::cuda::PluginInfo& info() const { return info_; }
  const pavo::cuda::Options& options() const { return options_; }
  void log(int32_t level, std::string_view message) const {
    host_.log(host_.context, level, message.data(), message.size());
  }

  // [any] The devices, enumerated at the first call; none if there is no driver.
  std::deque<pavo::cuda::DeviceEntry>& devices();
  // NULL with PAVO_ERROR_NO_DEVICE.
  pavo::cuda::DeviceEntry* find_device(std::string_view id, pavo_error* error);

 private:
  void enumerate();
  void add_device(int ordinal, int driver_version);

  const pavo::cuda::PluginInfo& info_;
  const pavo_host_api& host_;
  const pavo::cuda::Options options_;
  std::once_flag enumerated_;
  std::deque<pavo::cuda::DeviceEntry> devices_;
};
