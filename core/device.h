// Owners for what a plugin hands out: instance, device, buffer, timeline, plan.
//
// Thin RAII over sdk/include/pavo/plugin.h; every failure becomes a Status that names the plugin.
// Thread rules are those of the wrapped functions. Objects must not outlive the device that made
// them, nor a device its instance; plugins themselves stay loaded until the process ends.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "pavo/plugin.h"

#include "core/status.h"

namespace pavo {

// An option as the user gave it, already typed.
struct OptionValue {
  std::string key;
  int32_t type = PAVO_VALUE_STRING;  // PAVO_VALUE_*
  int64_t int_value = 0;
  double float_value = 0;
  std::string string_value;
};

// Owns what a pavo_values list points to.
class ValueList {
 public:
  explicit ValueList(std::vector<OptionValue> values);
  ValueList(const ValueList&) = delete;
  ValueList& operator=(const ValueList&) = delete;
  const pavo_values* get() const { return &list_; }

 private:
  std::vector<OptionValue> values_;
  std::vector<pavo_value> items_;
  std::vector<const pavo_value*> pointers_;
  pavo_values list_ = {};
};

class PluginInstance;

class Buffer {
 public:
  Buffer() = default;
  Buffer(const pavo_plugin_api* api, pavo_buffer* handle, int64_t size_bytes)
      : api_(api), handle_(handle), size_bytes_(size_bytes) {}
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer();

  pavo_buffer* get() const { return handle_; }
  int64_t size_bytes() const { return size_bytes_; }
  // nullptr if the host cannot see this memory.
  std::byte* host() const;

 private:
  const pavo_plugin_api* api_ = nullptr;
  pavo_buffer* handle_ = nullptr;
  int64_t size_bytes_ = 0;
};

class Plan {
 public:
  Plan() = default;
  Plan(const pavo_plugin_api* api, pavo_plan* handle, pavo_plan_info info)
      : api_(api), handle_(handle), info_(info) {}
  Plan(Plan&& other) noexcept;
  Plan& operator=(Plan&& other) noexcept;
  ~Plan();

  const pavo_plan_info& info() const { return info_; }
  Status submit(const pavo_submit& submit);
  // Time of each node in the last finished run; empty if the plugin does not tell.
  std::vector<int64_t> node_times_ns(uint32_t node_count);

 private:
  const pavo_plugin_api* api_ = nullptr;
  pavo_plan* handle_ = nullptr;
  pavo_plan_info info_ = {};
};

// An opened device with one timeline, on which everything that Pavo queues there is ordered.
class Device {
 public:
  static Result<std::unique_ptr<Device>> open(
      std::shared_ptr<PluginInstance> plugin, const std::string& id);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  ~Device();

  const std::string& id() const { return id_; }
  const std::string& name() const { return name_; }
  const pavo_values* caps() const { return caps_; }
  PluginInstance& plugin() const { return *plugin_; }
  const std::string& plugin_id() const;

  Result<Buffer> create_buffer(int64_t size_bytes, int32_t kind = PAVO_MEMORY_DEVICE);
  // kUnsupported if the plugin cannot wrap host memory.
  Result<Buffer> import_buffer(const void* memory, int64_t size_bytes);
  Result<pavo_memory_info> memory() const;
  Status pack(
      const pavo_tensor& tensor,
      const pavo_binding& target,
      const void* src,
      int64_t row_begin,
      int64_t row_count);
  Result<Plan> create_plan(const pavo_graph& graph);

  // Queues copies after everything queued before; they are done when wait() returns.
  Status copy(std::span<const pavo_copy_region> regions);
  // Queues a run after everything queued before. `submit` without waits and signals.
  Status run(Plan& plan, pavo_submit submit);
  // Blocks until everything queued is done; reports the first failure since the last wait.
  Status wait();

 private:
  Device(std::shared_ptr<PluginInstance> plugin, pavo_device* handle);

  std::shared_ptr<PluginInstance> plugin_;
  pavo_device* handle_;
  pavo_timeline* timeline_ = nullptr;
  uint64_t queued_ = 0;  // last value that queued work will signal
  std::string id_;
  std::string name_;
  const pavo_values* caps_ = nullptr;
};

// A plugin with its options.
class PluginInstance {
 public:
  // api: as the loader returned it, valid for the life of the process.
  static Result<std::shared_ptr<PluginInstance>> create(
      const pavo_plugin_api* api, std::vector<OptionValue> options);
  PluginInstance(const PluginInstance&) = delete;
  PluginInstance& operator=(const PluginInstance&) = delete;
  ~PluginInstance();

  const std::string& id() const { return id_; }
  const pavo_plugin_api* api() const { return api_; }
  pavo_plugin* get() const { return handle_; }

  struct DeviceInfo {
    std::string id;
    std::string name;
    int32_t ordinal = 0;
    const pavo_values* caps = nullptr;
  };
  // Devices that this plugin could serve.
  Result<std::vector<DeviceInfo>> devices() const;
  // One verdict a node, same order.
  Result<std::vector<pavo_verdict>> query(const pavo_values* caps, const pavo_graph& graph) const;
  Result<pavo_pack_info> pack_info(const pavo_values* caps, const pavo_tensor& tensor) const;

 private:
  PluginInstance(const pavo_plugin_api* api, pavo_plugin* handle);

  const pavo_plugin_api* api_;
  pavo_plugin* handle_;
  std::string id_;
};

// Value of a cap; nullptr if it is not there.
const pavo_value* find_value(const pavo_values* values, std::string_view key);

}  // namespace pavo
