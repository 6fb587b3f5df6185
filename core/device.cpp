#include "core/device.h"

#include <algorithm>
#include <utility>

#include "core/plugin_guard.h"

namespace pavo {
namespace {

Code code_of(int32_t code) {
  switch (code) {
    case PAVO_OK:
      return Code::kOk;
    case PAVO_ERROR_INVALID_ARGUMENT:
      return Code::kInvalidArgument;
    case PAVO_ERROR_UNSUPPORTED:
    case PAVO_ERROR_UNSUPPORTED_FIELD:
    case PAVO_ERROR_VERSION:
      return Code::kUnsupported;
    case PAVO_ERROR_OUT_OF_MEMORY:
      return Code::kOutOfMemory;
    case PAVO_ERROR_NODE_FAILED:
      return Code::kNodeFailed;
    case PAVO_ERROR_DEVICE_LOST:
      return Code::kDeviceLost;
    case PAVO_ERROR_NO_DEVICE:
      return Code::kNoBackend;
    case PAVO_ERROR_TIMEOUT:
      return Code::kTimeout;
    case PAVO_ERROR_CANCELLED:
      return Code::kCancelled;
    default:
      return Code::kInternal;
  }
}

std::string to_std(const pavo_string& string) {
  return string.size == 0 ? std::string() : std::string(string.data, string.size);
}

pavo_string to_pavo(const std::string& string) {
  return pavo_string{string.data(), string.size()};
}

}  // namespace

ErrorSlot::ErrorSlot() {
  error_.struct_size = sizeof error_;
}

Status ErrorSlot::to_status(int32_t code, const std::string& plugin) const {
  if (code == PAVO_OK) {
    return Status();
  }
  const size_t size = std::min<size_t>(error_.message_size, sizeof error_.message);
  std::string message(error_.message, size);
  if (message.empty()) {
    message = "status " + std::to_string(code) + " without a message";
  }
  return Status(code_of(code), plugin + ": " + message);
}

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
    api_->buffer_destroy(handle_);
  }
}

std::byte* Buffer::host() const {
  return handle_ == nullptr ? nullptr : static_cast<std::byte*>(api_->buffer_host(handle_));
}

// ---- Plan
// ----------------------------------------------------------------------------------------

Plan::Plan(Plan&& other) noexcept
    : api_(other.api_),
      plugin_(std::move(other.plugin_)),
      handle_(std::exchange(other.handle_, nullptr)),
      info_(other.info_) {}

Plan& Plan::operator=(Plan&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(plugin_, other.plugin_);
  std::swap(handle_, other.handle_);
  std::swap(info_, other.info_);
  return *this;
}

Plan::~Plan() {
  if (handle_ != nullptr) {
    api_->plan_destroy(handle_);
  }
}

Status Plan::submit(const pavo_submit& submit) {
  ErrorSlot error;
  const PluginScope scope(api_, "submit");
  return error.to_status(api_->submit(handle_, &submit, error.get()), plugin_);
}

std::vector<int64_t> Plan::node_times_ns(uint32_t node_count) {
  std::vector<int64_t> times(node_count);
  ErrorSlot error;
  if (api_->plan_timings == nullptr ||
      api_->plan_timings(handle_, times.data(), node_count, error.get()) != PAVO_OK) {
    times.clear();
  }
  return times;
}

// ---- PluginInstance
// ------------------------------------------------------------------------------

PluginInstance::PluginInstance(const pavo_plugin_api* api, pavo_plugin* handle)
    : api_(api), handle_(handle), id_(to_std(api->id)) {}

PluginInstance::~PluginInstance() {
  api_->plugin_destroy(handle_);
}

Result<std::shared_ptr<PluginInstance>> PluginInstance::create(
    const pavo_plugin_api* api, std::vector<OptionValue> options) {
  const ValueList list(std::move(options));
  ErrorSlot error;
  pavo_plugin* handle = nullptr;
  PAVO_RETURN_IF_ERROR(
      error.to_status(api->plugin_create(list.get(), &handle, error.get()), to_std(api->id)));
  return std::shared_ptr<PluginInstance>(new PluginInstance(api, handle));
}

Result<std::vector<PluginInstance::DeviceInfo>> PluginInstance::devices() const {
  ErrorSlot error;
  uint32_t count = 0;
  PAVO_RETURN_IF_ERROR(error.to_status(api_->device_count(handle_, &count, error.get()), id_));
  std::vector<DeviceInfo> devices;
  for (uint32_t i = 0; i < count; ++i) {
    pavo_device_info info = {};
    info.struct_size = sizeof info;
    PAVO_RETURN_IF_ERROR(error.to_status(api_->device_info(handle_, i, &info, error.get()), id_));
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
  ErrorSlot error;
  const PluginScope scope(api_, "query_nodes");
  PAVO_RETURN_IF_ERROR(
      error.to_status(api_->query_nodes(handle_, caps, &graph, pointers.data(), error.get()), id_));
  return verdicts;
}

Result<pavo_pack_info> PluginInstance::pack_info(
    const pavo_values* caps, const pavo_tensor& tensor) const {
  pavo_pack_info info = {};
  info.struct_size = sizeof info;
  ErrorSlot error;
  PAVO_RETURN_IF_ERROR(
      error.to_status(api_->pack_info(handle_, caps, &tensor, &info, error.get()), id_));
  return info;
}

// ---- Device
// --------------------------------------------------------------------------------------

Device::Device(std::shared_ptr<PluginInstance> plugin, pavo_device* handle)
    : plugin_(std::move(plugin)), handle_(handle) {}

Device::~Device() {
  if (timeline_ != nullptr) {
    (void)wait();  // nothing queued may outlive the device; a late failure has no one to go to
    plugin_->api()->timeline_destroy(timeline_);
  }
  plugin_->api()->device_close(handle_);
}

const std::string& Device::plugin_id() const {
  return plugin_->id();
}

Result<std::unique_ptr<Device>> Device::open(
    std::shared_ptr<PluginInstance> plugin, const std::string& id) {
  PAVO_ASSIGN_OR_RETURN(const auto infos, plugin->devices());
  ErrorSlot error;
  pavo_device* handle = nullptr;
  const pavo_string wanted = to_pavo(id);
  const pavo_plugin_api* api = plugin->api();
  const PluginScope scope(api, "device_open");
  PAVO_RETURN_IF_ERROR(error.to_status(
      api->device_open(plugin->get(), &wanted, &handle, error.get()), plugin->id()));
  std::unique_ptr<Device> device(new Device(std::move(plugin), handle));
  PAVO_RETURN_IF_ERROR(error.to_status(
      api->timeline_create(handle, &device->timeline_, error.get()), device->plugin_id()));
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
  ErrorSlot error;
  pavo_buffer* buffer = nullptr;
  PAVO_RETURN_IF_ERROR(error.to_status(
      plugin_->api()->buffer_create(handle_, size_bytes, kind, &buffer, error.get()), plugin_id()));
  return Buffer(plugin_->api(), buffer, size_bytes);
}

Result<Buffer> Device::import_buffer(const void* memory, int64_t size_bytes) {
  if (plugin_->api()->buffer_import == nullptr) {
    return Status(Code::kUnsupported, plugin_id() + ": cannot use host memory in place");
  }
  ErrorSlot error;
  pavo_buffer* buffer = nullptr;
  PAVO_RETURN_IF_ERROR(error.to_status(
      plugin_->api()->buffer_import(handle_, memory, size_bytes, &buffer, error.get()),
      plugin_id()));
  return Buffer(plugin_->api(), buffer, size_bytes);
}

Result<pavo_memory_info> Device::memory() const {
  pavo_memory_info info = {};
  info.struct_size = sizeof info;
  ErrorSlot error;
  PAVO_RETURN_IF_ERROR(
      error.to_status(plugin_->api()->device_memory(handle_, &info, error.get()), plugin_id()));
  return info;
}

Status Device::pack(
    const pavo_tensor& tensor,
    const pavo_binding& target,
    const void* src,
    int64_t row_begin,
    int64_t row_count) {
  ErrorSlot error;
  const PluginScope scope(plugin_->api(), "pack");
  return error.to_status(
      plugin_->api()->pack(handle_, &tensor, &target, src, row_begin, row_count, error.get()),
      plugin_id());
}

Result<Plan> Device::create_plan(const pavo_graph& graph) {
  ErrorSlot error;
  pavo_plan* plan = nullptr;
  pavo_plan_info info = {};
  info.struct_size = sizeof info;
  const PluginScope scope(plugin_->api(), "plan_create");
  PAVO_RETURN_IF_ERROR(error.to_status(
      plugin_->api()->plan_create(handle_, &graph, &plan, &info, error.get()), plugin_id()));
  return Plan(plugin_->api(), plugin_id(), plan, info);
}

Status Device::copy(std::span<const pavo_copy_region> regions) {
  const pavo_fence after{timeline_, queued_};
  const pavo_fence signal{timeline_, queued_ + 1};
  ErrorSlot error;
  const PluginScope scope(plugin_->api(), "copy");
  const int32_t code = plugin_->api()->copy(
      handle_,
      regions.data(),
      static_cast<uint32_t>(regions.size()),
      &after,
      1,
      &signal,
      1,
      error.get());
  queued_ += code == PAVO_OK ? 1 : 0;
  return error.to_status(code, plugin_id());
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
  ErrorSlot error;
  const PluginScope scope(plugin_->api(), "timeline_wait");
  return error.to_status(
      plugin_->api()->timeline_wait(timeline_, queued_, -1, error.get()), plugin_id());
}

}  // namespace pavo
