#include "core/device.h"

#include <utility>

#include "core/plugin_call.h"

namespace pavo {
namespace {

std::string to_std(const pavo_string& string) {
  return string.size == 0 ? std::string() : std::string(string.data, string.size);
}

pavo_string to_pavo(const std::string& string) {
  return pavo_string{string.data(), string.size()};
}

}  // namespace

ValueList::ValueList(std::vector<OptionValue> values) : values_(std::move(values)) {
  items_.resize(values_.size());
  for (size_t i = 0; i < values_.size(); ++i) {
    pavo_value& item = items_[i];
    item.struct_size = sizeof item;
    item.type = values_[i].type;
    item.key = to_pavo(values_[i].key);
    item.int_value = values_[i].int_value;
    item.float_value = values_[i].float_value;
    item.string_value = to_pavo(values_[i].string_value);
    pointers_.push_back(&item);
  }
  list_.struct_size = sizeof list_;
  list_.count = static_cast<uint32_t>(pointers_.size());
  list_.items = pointers_.data();
}

const pavo_value* find_value(const pavo_values* values, std::string_view key) {
  for (uint32_t i = 0; values != nullptr && i < values->count; ++i) {
    const pavo_value* item = values->items[i];
    if (std::string_view(item->key.data, item->key.size) == key) {
      return item;
    }
  }
  return nullptr;
}

// ---- Buffer
// --------------------------------------------------------------------------------------

Buffer::Buffer(Buffer&& other) noexcept
    : api_(other.api_),
      handle_(std::exchange(other.handle_, nullptr)),
      size_bytes_(std::exchange(other.size_bytes_, 0)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(handle_, other.handle_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

Buffer::~Buffer() {
  if (handle_ != nullptr) {
    call_plugin_quietly(api_, "buffer_destroy", [&] { api_->buffer_destroy(handle_); });
  }
}

std::byte* Buffer::host() const {
  void* address = nullptr;
  if (handle_ != nullptr) {
    call_plugin_quietly(api_, "buffer_host", [&] { address = api_->buffer_host(handle_); });
  }
  return static_cast<std::byte*>(address);
}

// ---- Plan
// ----------------------------------------------------------------------------------------

Plan::Plan(Plan&& other) noexcept
    : api_(other.api_), handle_(std::exchange(other.handle_, nullptr)), info_(other.info_) {}

Plan& Plan::operator=(Plan&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(handle_, other.handle_);
  std::swap(info_, other.info_);
  return *this;
}

Plan::~Plan() {
  if (handle_ != nullptr) {
    call_plugin_quietly(api_, "plan_destroy", [&] { api_->plan_destroy(handle_); });
  }
}

Status Plan::submit(const pavo_submit& submit) {
  return call_plugin(
      api_, "submit", [&](pavo_error* error) { return api_->submit(handle_, &submit, error); });
}

std::vector<int64_t> Plan::node_times_ns(uint32_t node_count) {
  std::vector<int64_t> times(node_count);
  const bool told = api_->plan_timings != nullptr &&
                    call_plugin(api_, "plan_timings", [&](pavo_error* error) {
                      return api_->plan_timings(handle_, times.data(), node_count, error);
                    }).ok();
  if (!told) {
    times.clear();
  }
  return times;
}

// ---- PluginInstance
// ------------------------------------------------------------------------------

PluginInstance::PluginInstance(const pavo_plugin_api* api, pavo_plugin* handle)
    : api_(api), handle_(handle), id_(to_std(api->id)) {}

PluginInstance::~PluginInstance() {
  call_plugin_quietly(api_, "plugin_destroy", [&] { api_->plugin_destroy(handle_); });
}

Result<std::shared_ptr<PluginInstance>> PluginInstance::create(
    const pavo_plugin_api* api, std::vector<OptionValue> options) {
  const ValueList list(std::move(options));
  pavo_plugin* handle = nullptr;
  PAVO_RETURN_IF_ERROR(call_plugin(api, "plugin_create", [&](pavo_error* error) {
    return api->plugin_create(list.get(), &handle, error);
  }));
  return std::shared_ptr<PluginInstance>(new PluginInstance(api, handle));
}

Result<std::vector<PluginInstance::DeviceInfo>> PluginInstance::devices() const {
  uint32_t count = 0;
  PAVO_RETURN_IF_ERROR(call_plugin(api_, "device_count", [&](pavo_error* error) {
    return api_->device_count(handle_, &count, error);
  }));
  std::vector<DeviceInfo> devices;
  for (uint32_t i = 0; i < count; ++i) {
    pavo_device_info info = {};
    info.struct_size = sizeof info;
    PAVO_RETURN_IF_ERROR(call_plugin(api_, "device_info", [&](pavo_error* error) {
      return api_->device_info(handle_, i, &info, error);
    }));
    devices.push_back({to_std(info.id), to_std(info.name), info.ordinal, info.caps});
  }
  return devices;
}

Result<std::vector<pavo_verdict>> PluginInstance::query(
    const pavo_values* caps, const pavo_graph& graph) const {
  std::vector<pavo_verdict> verdicts(graph.node_count);
  std::vector<pavo_verdict*> pointers;
  for (pavo_verdict& verdict : verdicts) {
    verdict.struct_size = sizeof verdict;
    pointers.push_back(&verdict);
  }
  PAVO_RETURN_IF_ERROR(call_plugin(api_, "query_nodes", [&](pavo_error* error) {
    return api_->query_nodes(handle_, caps, &graph, pointers.data(), error);
  }));
  return verdicts;
}

Result<pavo_pack_info> PluginInstance::pack_info(
    const pavo_values* caps, const pavo_tensor& tensor) const {
  pavo_pack_info info = {};
  info.struct_size = sizeof info;
  PAVO_RETURN_IF_ERROR(call_plugin(api_, "pack_info", [&](pavo_error* error) {
    return api_->pack_info(handle_, caps, &tensor, &info, error);
  }));
  return info;
}

// ---- Device
// --------------------------------------------------------------------------------------

Device::Device(std::shared_ptr<PluginInstance> plugin, pavo_device* handle)
    : plugin_(std::move(plugin)), handle_(handle) {}

Device::~Device() {
  const pavo_plugin_api* api = plugin_->api();
  if (timeline_ != nullptr) {
    (void)wait();  // nothing queued may outlive the device; a late failure has no one to go to
    call_plugin_quietly(api, "timeline_destroy", [&] { api->timeline_destroy(timeline_); });
  }
  call_plugin_quietly(api, "device_close", [&] { api->device_close(handle_); });
}

const std::string& Device::plugin_id() const {
  return plugin_->id();
}

Result<std::unique_ptr<Device>> Device::open(
    std::shared_ptr<PluginInstance> plugin, const std::string& id) {
  PAVO_ASSIGN_OR_RETURN(const auto infos, plugin->devices());
  pavo_device* handle = nullptr;
  const pavo_string wanted = to_pavo(id);
  const pavo_plugin_api* api = plugin->api();
  PAVO_RETURN_IF_ERROR(call_plugin(api, "device_open", [&](pavo_error* error) {
    return api->device_open(plugin->get(), &wanted, &handle, error);
  }));
  std::unique_ptr<Device> device(new Device(std::move(plugin), handle));
  PAVO_RETURN_IF_ERROR(call_plugin(api, "timeline_create", [&](pavo_error* error) {
    return api->timeline_create(handle, &device->timeline_, error);
  }));
  device->id_ = id;
  for (const auto& info : infos) {
    if (info.id == id) {
      device->name_ = info.name;
      device->caps_ = info.caps;
    }
  }
  return device;
}

Result<Buffer> Device::create_buffer(int64_t size_bytes, int32_t kind) {
  const pavo_plugin_api* api = plugin_->api();
  pavo_buffer* buffer = nullptr;
  PAVO_RETURN_IF_ERROR(call_plugin(api, "buffer_create", [&](pavo_error* error) {
    return api->buffer_create(handle_, size_bytes, kind, &buffer, error);
  }));
  return Buffer(api, buffer, size_bytes);
}

Result<Buffer> Device::import_buffer(const void* memory, int64_t size_bytes) {
  const pavo_plugin_api* api = plugin_->api();
  if (api->buffer_import == nullptr) {
    return Status(Code::kUnsupported, plugin_id() + ": cannot use host memory in place");
  }
  pavo_buffer* buffer = nullptr;
  PAVO_RETURN_IF_ERROR(call_plugin(api, "buffer_import", [&](pavo_error* error) {
    return api->buffer_import(handle_, memory, size_bytes, &buffer, error);
  }));
  return Buffer(api, buffer, size_bytes);
}

Result<pavo_memory_info> Device::memory() const {
  pavo_memory_info info = {};
  info.struct_size = sizeof info;
  PAVO_RETURN_IF_ERROR(call_plugin(plugin_->api(), "device_memory", [&](pavo_error* error) {
    return plugin_->api()->device_memory(handle_, &info, error);
  }));
  return info;
}

Status Device::pack(
    const pavo_tensor& tensor,
    const pavo_binding& target,
    const void* src,
    int64_t row_begin,
    int64_t row_count) {
  return call_plugin(plugin_->api(), "pack", [&](pavo_error* error) {
    return plugin_->api()->pack(handle_, &tensor, &target, src, row_begin, row_count, error);
  });
}

Result<Plan> Device::create_plan(const pavo_graph& graph) {
  const pavo_plugin_api* api = plugin_->api();
  pavo_plan* plan = nullptr;
  pavo_plan_info info = {};
  info.struct_size = sizeof info;
  PAVO_RETURN_IF_ERROR(call_plugin(api, "plan_create", [&](pavo_error* error) {
    return api->plan_create(handle_, &graph, &plan, &info, error);
  }));
  return Plan(api, plan, info);
}

Status Device::copy(std::span<const pavo_copy_region> regions) {
  const pavo_fence after{timeline_, queued_};
  const pavo_fence signal{timeline_, queued_ + 1};
  const auto count = static_cast<uint32_t>(regions.size());
  const Status status = call_plugin(plugin_->api(), "copy", [&](pavo_error* error) {
    return plugin_->api()->copy(handle_, regions.data(), count, &after, 1, &signal, 1, error);
  });
  queued_ += status.ok() ? 1 : 0;
  return status;
}

Status Device::run(Plan& plan, pavo_submit submit) {
  const pavo_fence after{timeline_, queued_};
  const pavo_fence signal{timeline_, queued_ + 1};
  submit.struct_size = sizeof submit;
  submit.waits = &after;
  submit.wait_count = 1;
  submit.signals = &signal;
  submit.signal_count = 1;
  const Status status = plan.submit(submit);
  queued_ += status.ok() ? 1 : 0;
  return status;
}

Status Device::wait() {
  // A wait ends with one failure; others may be left, and after an exception the work itself.
  constexpr int kMostFailures = 1000;
  Status first;
  for (int i = 0; i < kMostFailures; ++i) {
    const Status status = call_plugin(plugin_->api(), "timeline_wait", [&](pavo_error* error) {
      return plugin_->api()->timeline_wait(timeline_, queued_, -1, error);
    });
    if (status.ok()) {
      break;
    }
    first = first.ok() ? status : first;
  }
  return first;
}

}  // namespace pavo
