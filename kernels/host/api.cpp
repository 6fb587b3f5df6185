// Trampolines: each makes the device current, lets no exception out and remembers a lost device.
#include "kernels/host/api.h"

#include <memory>
#include <utility>

#include "pavo/plugin_helpers.h"

#include "kernels/host/copy.h"
#include "kernels/host/device.h"
#include "kernels/host/error.h"
#include "kernels/host/instance.h"
#include "kernels/host/packing.h"
#include "kernels/host/plan.h"
#include "kernels/host/predicates.h"
#include "kernels/host/self_test.h"
#include "kernels/host/timeline.h"

namespace pavo::cuda {
namespace {

using sdk::fail;
using sdk::guard;

// Set by pavo_plugin_query, valid for ever.
const PluginInfo* g_info = nullptr;
const pavo_host_api* g_host = nullptr;

// Runs `body` with the device current; a loss of the device is remembered.
template <typename Body>
int32_t on_device(pavo_device* device, pavo_error* error, Body&& body) {
  return guard(error, [&]() -> int32_t {
    PAVO_TRY(device->enter(error));
    const int32_t code = body();
    return code == PAVO_OK ? code : device->note(code, *error);
  });
}

template <typename T>
int32_t check_out(const T* out, const char* what, pavo_error* error) {
  if (out != nullptr && out->struct_size >= sizeof(T)) {
    return PAVO_OK;
  }
  return fail(
      error,
      PAVO_ERROR_INVALID_ARGUMENT,
      "expected a %s of at least %zu bytes, got %u",
      what,
      sizeof(T),
      out == nullptr ? 0u : out->struct_size);
}

int32_t options(const pavo_option_info* const** out, uint32_t* count, pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    *out = option_infos(count);
    return PAVO_OK;
  });
}

int32_t plugin_create(const pavo_values* values, pavo_plugin** out, pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    Options parsed;
    PAVO_TRY(parse_options(*g_info, values, &parsed, error));
    *out = new pavo_plugin(*g_info, *g_host, std::move(parsed));
    return PAVO_OK;
  });
}

void plugin_destroy(pavo_plugin* plugin) {
  delete plugin;
}

int32_t device_count(pavo_plugin* plugin, uint32_t* count, pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    *count = static_cast<uint32_t>(plugin->devices().size());
    return PAVO_OK;
  });
}

int32_t device_info(
    pavo_plugin* plugin, uint32_t index, pavo_device_info* info, pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    PAVO_TRY(check_out(info, "pavo_device_info", error));
    auto& devices = plugin->devices();
    if (index >= devices.size()) {
      return fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "expected a device index below %zu, got %u",
          devices.size(),
          index);
    }
    DeviceEntry& entry = devices[index];
    info->ordinal = entry.ordinal;
    info->id = sdk::string(entry.id);
    info->name = sdk::string(entry.name);
    info->caps = &entry.list.values();
    return PAVO_OK;
  });
}

int32_t query_nodes_entry(
    pavo_plugin* plugin,
    const pavo_values* caps,
    const pavo_graph* graph,
    pavo_verdict* const* verdicts,
    pavo_error* error) {
  return guard(error, [&] {
    return query_nodes(plugin->info(), plugin->options(), caps, graph, verdicts, error);
  });
}

int32_t pack_info_entry(
    pavo_plugin* /*plugin*/,
    const pavo_values* /*caps*/,
    const pavo_tensor* tensor,
    pavo_pack_info* info,
    pavo_error* error) {
  return guard(error, [&] { return pack_info(tensor, info, error); });
}

int32_t device_open(
    pavo_plugin* plugin, const pavo_string* id, pavo_device** out, pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    if (id == nullptr) {
      return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "expected a device id, got NULL");
    }
    DeviceEntry* entry = plugin->find_device(sdk::view(*id), error);
    if (entry == nullptr) {
      return PAVO_ERROR_NO_DEVICE;
    }
    auto device = std::make_unique<pavo_device>(*plugin, *entry);
    PAVO_TRY(device->init(error));
    *out = device.release();
    return PAVO_OK;
  });
}

void device_close(pavo_device* device) {
  delete device;
}

int32_t device_memory(pavo_device* device, pavo_memory_info* info, pavo_error* error) {
  return on_device(device, error, [&]() -> int32_t {
    PAVO_TRY(check_out(info, "pavo_memory_info", error));
    return device->memory(info, error);
  });
}

int32_t device_self_test(pavo_device* device, pavo_error* error) {
  return on_device(device, error, [&] { return self_test(device, error); });
}

int32_t buffer_create(
    pavo_device* device, int64_t size_bytes, int32_t kind, pavo_buffer** out, pavo_error* error) {
  return on_device(
      device, error, [&] { return device->buffer_create(size_bytes, kind, out, error); });
}

void buffer_destroy(pavo_buffer* buffer) {
  if (buffer != nullptr) {
    buffer->device->buffer_destroy(buffer);
  }
}

void* buffer_host(pavo_buffer* buffer) {
  return buffer->kind == PAVO_MEMORY_HOST ? buffer->data : nullptr;
}

int32_t pack_entry(
    pavo_device* device,
    const pavo_tensor* tensor,
    const pavo_binding* target,
    const void* src,
    int64_t row_begin,
    int64_t row_count,
    pavo_error* error) {
  return on_device(device, error, [&] {
    return pack(device, tensor, target, src, row_begin, row_count, error);
  });
}

int32_t timeline_create(pavo_device* device, pavo_timeline** out, pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    *out = new pavo_timeline(device);
    return PAVO_OK;
  });
}

void timeline_destroy(pavo_timeline* timeline) {
  delete timeline;
}

int32_t timeline_wait(
    pavo_timeline* timeline, uint64_t value, int64_t timeout_ns, pavo_error* error) {
  return guard(error, [&] { return timeline->wait(value, timeout_ns, error); });
}

int32_t copy(
    pavo_device* device,
    const pavo_copy_region* regions,
    uint32_t region_count,
    const pavo_fence* waits,
    uint32_t wait_count,
    const pavo_fence* signals,
    uint32_t signal_count,
    pavo_error* error) {
  return on_device(device, error, [&] {
    const Fences fences = {waits, wait_count, signals, signal_count};
    return copy_regions(device, regions, region_count, fences, error);
  });
}

int32_t plan_create(
    pavo_device* device,
    const pavo_graph* graph,
    pavo_plan** out,
    pavo_plan_info* info,
    pavo_error* error) {
  return on_device(device, error, [&]() -> int32_t {
    PAVO_TRY(check_out(info, "pavo_plan_info", error));
    auto plan = std::make_unique<pavo_plan>(device);
    PAVO_TRY(plan->init(graph, error));
    info->launches = plan->launches();
    info->workspace_bytes = plan->workspace_bytes();
    *out = plan.release();
    return PAVO_OK;
  });
}

void plan_destroy(pavo_plan* plan) {
  delete plan;
}

int32_t submit(pavo_plan* plan, const pavo_submit* given, pavo_error* error) {
  return on_device(plan->device(), error, [&]() -> int32_t {
    pavo_submit read{};
    PAVO_TRY(sdk::read_struct(given, &read, sizeof(pavo_submit), "pavo_submit", error));
    return plan->submit(read, error);
  });
}

int32_t plan_timings(pavo_plan* plan, int64_t* node_ns, uint32_t node_count, pavo_error* error) {
  return on_device(
      plan->device(), error, [&] { return plan->timings(node_ns, node_count, error); });
}

pavo_plugin_api make_api(const PluginInfo& info, uint32_t minor) {
  pavo_plugin_api api = {};
  api.struct_size = sizeof api;
  api.abi_major = PAVO_ABI_MAJOR;
  api.abi_minor = minor;
  api.id = sdk::string(info.id);
  api.version = sdk::string(info.version);
  api.options = options;
  api.plugin_create = plugin_create;
  api.plugin_destroy = plugin_destroy;
  api.device_count = device_count;
  api.device_info = device_info;
  api.query_nodes = query_nodes_entry;
  api.pack_info = pack_info_entry;
  api.device_open = device_open;
  api.device_close = device_close;
  api.device_memory = device_memory;
  api.device_self_test = device_self_test;
  api.buffer_create = buffer_create;
  api.buffer_import = nullptr;  // weights need device memory
  api.buffer_destroy = buffer_destroy;
  api.buffer_host = buffer_host;
  api.pack = pack_entry;
  api.timeline_create = timeline_create;
  api.timeline_destroy = timeline_destroy;
  api.timeline_wait = timeline_wait;
  api.copy = copy;
  api.plan_create = plan_create;
  api.plan_destroy = plan_destroy;
  api.submit = submit;
  api.plan_timings = plan_timings;
  return api;
}

}  // namespace

int32_t query_plugin(
    const PluginInfo& info,
    uint32_t abi_major,
    uint32_t host_min_minor,
    uint32_t host_max_minor,
    const pavo_host_api* host,
    const pavo_plugin_api** out,
    pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    uint32_t minor = 0;
    PAVO_TRY(sdk::negotiate(abi_major, host_min_minor, host_max_minor, &minor, error));
    PAVO_TRY(check_out(host, "pavo_host_api", error));
    static pavo_plugin_api table;
    table = make_api(info, minor);
    g_info = &info;
    g_host = host;
    *out = &table;
    return PAVO_OK;
  });
}

}  // namespace pavo::cuda
