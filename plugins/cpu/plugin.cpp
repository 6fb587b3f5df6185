// The exported function and the table of the CPU plugin: trampolines that let no exception out.
#include "pavo/plugin.h"

#include <memory>

#include "pavo/plugin_helpers.h"

#include "plugins/cpu/device.h"
#include "plugins/cpu/instance.h"
#include "plugins/cpu/plan.h"
#include "plugins/cpu/timeline.h"

#define PAVO_CPU_ID "cpu"
#define PAVO_CPU_VERSION "0.1.0"

PAVO_PLUGIN_NOTE("id=" PAVO_CPU_ID "\nversion=" PAVO_CPU_VERSION
                 "\nvendor=Pavo\nlicense=Apache-2.0\nabi=0.1-1\nkind=cpu\nneeds=\n");

namespace {

using pavo::sdk::fail;
using pavo::sdk::guard;

const pavo_host_api* g_host = nullptr;  // set once by pavo_plugin_query, valid for ever

int32_t options(const pavo_option_info* const** out, uint32_t* count, pavo_error* /*error*/) {
  *out = pavo::cpu::option_infos(count);
  return PAVO_OK;
}

int32_t plugin_create(const pavo_values* values, pavo_plugin** out, pavo_error* error) {
  return guard(error, [&] {
    pavo::cpu::Options parsed;
    const int32_t code = pavo::cpu::parse_options(values, &parsed, error);
    if (code == PAVO_OK) {
      *out = new pavo_plugin(std::move(parsed));
    }
    return code;
  });
}

void plugin_destroy(pavo_plugin* plugin) {
  delete plugin;
}

int32_t device_count(pavo_plugin* /*plugin*/, uint32_t* count, pavo_error* /*error*/) {
  *count = 1;
  return PAVO_OK;
}

int32_t device_info(
    pavo_plugin* plugin, uint32_t index, pavo_device_info* info, pavo_error* error) {
  if (index != 0 || info == nullptr || info->struct_size < sizeof(pavo_device_info)) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected device 0 and a pavo_device_info of at least %zu bytes, got device %u",
        sizeof(pavo_device_info),
        index);
  }
  info->ordinal = 0;
  info->id = pavo::sdk::string(PAVO_CPU_ID);
  info->name = pavo::sdk::string(plugin->caps().name());
  info->caps = &plugin->caps().values();
  return PAVO_OK;
}

int32_t query_nodes(
    pavo_plugin* plugin,
    const pavo_values* caps,
    const pavo_graph* graph,
    pavo_verdict* const* verdicts,
    pavo_error* error) {
  return guard(error, [&] { return plugin->query_nodes(caps, graph, verdicts, error); });
}

int32_t pack_info(
    pavo_plugin* /*plugin*/,
    const pavo_values* /*caps*/,
    const pavo_tensor* tensor,
    pavo_pack_info* info,
    pavo_error* error) {
  return guard(error, [&] { return pavo::cpu::pack_info(tensor, info, error); });
}

int32_t device_open(
    pavo_plugin* plugin, const pavo_string* id, pavo_device** out, pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    if (id == nullptr || pavo::sdk::view(*id) != PAVO_CPU_ID) {
      return fail(
          error, PAVO_ERROR_NO_DEVICE, "the CPU plugin has only the device '%s'", PAVO_CPU_ID);
    }
    *out = new pavo_device(*g_host, plugin->options());
    return PAVO_OK;
  });
}

void device_close(pavo_device* device) {
  delete device;
}

int32_t device_memory(pavo_device* device, pavo_memory_info* info, pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    if (info == nullptr || info->struct_size < sizeof(pavo_memory_info)) {
      return fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "expected a pavo_memory_info of at least %zu bytes",
          sizeof(pavo_memory_info));
    }
    const pavo::cpu::HostMemory memory = pavo::cpu::host_memory();
    info->total_bytes = memory.total_bytes;
    info->free_bytes = memory.free_bytes;
    info->used_bytes = device->used_bytes();
    return PAVO_OK;
  });
}

int32_t device_self_test(pavo_device* device, pavo_error* error) {
  return guard(error, [&] { return pavo::cpu::self_test(device, error); });
}

int32_t buffer_create(
    pavo_device* device, int64_t size_bytes, int32_t kind, pavo_buffer** out, pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    if (kind != PAVO_MEMORY_DEVICE && kind != PAVO_MEMORY_HOST) {
      return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "expected memory kind 0 or 1, got %d", kind);
    }
    return device->buffer_create(size_bytes, out, error);
  });
}

int32_t buffer_import(
    pavo_device* device,
    const void* memory,
    int64_t size_bytes,
    pavo_buffer** out,
    pavo_error* error) {
  return guard(error, [&] { return device->buffer_import(memory, size_bytes, out, error); });
}

void buffer_destroy(pavo_buffer* buffer) {
  if (buffer != nullptr) {
    buffer->device->buffer_destroy(buffer);
  }
}

void* buffer_host(pavo_buffer* buffer) {
  return buffer->data;
}

int32_t pack(
    pavo_device* device,
    const pavo_tensor* tensor,
    const pavo_binding* target,
    const void* src,
    int64_t row_begin,
    int64_t row_count,
    pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    if (target == nullptr) {
      return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "pack: the target is NULL");
    }
    return pavo::cpu::pack(device, tensor, *target, src, row_begin, row_count, error);
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
  return guard(error, [&] {
    const pavo::cpu::Fences fences = {waits, wait_count, signals, signal_count};
    int32_t code = fences.check(device, error);
    if (code == PAVO_OK) {
      code = pavo::cpu::copy_regions(device, regions, region_count, error);
    }
    return code == PAVO_OK ? fences.finish(nullptr, error) : code;
  });
}

int32_t plan_create(
    pavo_device* device,
    const pavo_graph* graph,
    pavo_plan** out,
    pavo_plan_info* info,
    pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    if (info == nullptr || info->struct_size < sizeof(pavo_plan_info)) {
      return fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "expected a pavo_plan_info of at least %zu bytes",
          sizeof(pavo_plan_info));
    }
    auto plan = std::make_unique<pavo_plan>(device);
    const int32_t code = plan->init(graph, error);
    if (code != PAVO_OK) {
      return code;
    }
    info->launches = plan->launches();
    info->workspace_bytes = plan->workspace_bytes();
    *out = plan.release();
    return PAVO_OK;
  });
}

void plan_destroy(pavo_plan* plan) {
  delete plan;
}

int32_t submit(pavo_plan* plan, const pavo_submit* arguments, pavo_error* error) {
  return guard(error, [&] {
    pavo_submit known;
    const int32_t code =
        pavo::sdk::read_struct(arguments, &known, sizeof(pavo_submit), "pavo_submit", error);
    return code == PAVO_OK ? plan->submit(known, error) : code;
  });
}

int32_t plan_timings(pavo_plan* plan, int64_t* node_ns, uint32_t node_count, pavo_error* error) {
  return guard(error, [&] { return plan->timings(node_ns, node_count, error); });
}

pavo_plugin_api make_api() {
  pavo_plugin_api api{};
  api.struct_size = sizeof api;
  api.abi_major = PAVO_ABI_MAJOR;
  api.abi_minor = PAVO_ABI_MINOR;
  api.id = pavo::sdk::string(PAVO_CPU_ID);
  api.version = pavo::sdk::string(PAVO_CPU_VERSION);
  api.options = options;
  api.plugin_create = plugin_create;
  api.plugin_destroy = plugin_destroy;
  api.device_count = device_count;
  api.device_info = device_info;
  api.query_nodes = query_nodes;
  api.pack_info = pack_info;
  api.device_open = device_open;
  api.device_close = device_close;
  api.device_memory = device_memory;
  api.device_self_test = device_self_test;
  api.buffer_create = buffer_create;
  api.buffer_import = buffer_import;
  api.buffer_destroy = buffer_destroy;
  api.buffer_host = buffer_host;
  api.pack = pack;
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

int32_t pavo_plugin_query(
    uint32_t abi_major,
    uint32_t host_min_minor,
    uint32_t host_max_minor,
    const pavo_host_api* host,
    const pavo_plugin_api** out,
    pavo_error* error) {
  uint32_t minor = 0;
  const int32_t code =
      pavo::sdk::negotiate(abi_major, host_min_minor, host_max_minor, &minor, error);
  if (code != PAVO_OK) {
    return code;
  }
  if (host == nullptr || host->struct_size < sizeof(pavo_host_api) || out == nullptr) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected a pavo_host_api of at least %zu bytes",
        sizeof(pavo_host_api));
  }
  // One table serves every minor: later ones only append to it.
  static pavo_plugin_api api = make_api();
  api.abi_minor = minor;
  g_host = host;
  *out = &api;
  return PAVO_OK;
}
