// A plugin that computes nothing: the empty folder to start from. It loads, negotiates, lists one
// device, moves memory, and refuses every node with a reason. TODO(null) marks each place where an
// author has to think; docs/plugin-interface.md says what each part is for.
#include <atomic>
#include <cinttypes>
#include <cstring>

#include "pavo/plugin.h"
#include "pavo/plugin_helpers.h"

// TODO(null): your id and version; kind=cuda has more lines, see the end of plugin.h.
PAVO_PLUGIN_NOTE(
    "id=null\nversion=0.1.0\nvendor=example\nlicense=example\nabi=0.1-1\nkind=other\n");

using pavo::sdk::fail;
using pavo::sdk::guard;

namespace {
const pavo_host_api* g_host = nullptr;  // valid until the process ends
}

// The handles of the ABI are yours to define.
struct pavo_plugin {  // TODO(null): options, and what the list of devices is made of
  // TODO(null): memory, bandwidth and what your predicate asks for; PAVO_CAP_ARCH is a must
  pavo_value arch{
      sizeof(pavo_value),
      PAVO_VALUE_STRING,
      pavo::sdk::string(PAVO_CAP_ARCH),
      0,
      0,
      pavo::sdk::string("null")};
  const pavo_value* items[1] = {&arch};
  pavo_values caps{sizeof(pavo_values), 1, items};
};
struct pavo_device {  // TODO(null): context, queues
  std::atomic<int64_t> used_bytes{0};
};
struct pavo_buffer {
  pavo_device* device;
  char* data;
  int64_t size;
};
struct pavo_timeline {  // TODO(null): whatever your queue signals
  uint64_t value = 0;
};

namespace {

template <typename T>
int32_t make(T** out, pavo_error* error) {
  return guard(error, [&]() -> int32_t {
    *out = new T();
    return PAVO_OK;
  });
}

template <typename T>
void destroy(T* handle) {
  delete handle;
}

int32_t options(const pavo_option_info* const** out, uint32_t* count, pavo_error*) {
  *out = nullptr;  // TODO(null): plugins are expected to have `refuse` and `force_variant`
  *count = 0;
  return PAVO_OK;
}

int32_t plugin_create(const pavo_values* values, pavo_plugin** out, pavo_error* error) {
  pavo_values list{};
  if (values != nullptr) {
    const int32_t code =
        pavo::sdk::read_struct(values, &list, sizeof(pavo_values), "pavo_values", error);
    if (code != PAVO_OK) {
      return code;
    }
  }
  for (uint32_t i = 0; i < list.count; ++i) {  // TODO(null): take those that you list in options
    const pavo_string key = list.items[i]->key;
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "there is no option '%.*s'",
        static_cast<int>(key.size),
        key.data);
  }
  return make(out, error);
}

int32_t device_count(pavo_plugin*, uint32_t* count, pavo_error*) {
  *count = 1;  // TODO(null): ask your driver; 0 and PAVO_OK when it is not there
  return PAVO_OK;
}

int32_t device_info(
    pavo_plugin* plugin, uint32_t index, pavo_device_info* info, pavo_error* error) {
  if (index != 0 || info == nullptr || info->struct_size < sizeof(pavo_device_info)) {
    return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "expected device 0, got %u", index);
  }
  info->ordinal = 0;
  info->id = pavo::sdk::string("null");  // TODO(null): unique and the same after a reboot
  info->name = pavo::sdk::string("Null device");
  info->caps = &plugin->caps;
  return PAVO_OK;
}

int32_t query_nodes(
    pavo_plugin*,
    const pavo_values*,
    const pavo_graph* graph,
    pavo_verdict* const* verdicts,
    pavo_error*) {
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    // TODO(null): accept what your kernels can run, and name the kernel. Both answers are promises.
    pavo::sdk::refuse(
        verdicts[i],
        PAVO_REASON_OP,
        -1,
        -1,
        0,
        graph->nodes[i]->op,
        "this plugin has no kernel for op %d",
        graph->nodes[i]->op);
  }
  return PAVO_OK;
}

int32_t pack_info(
    pavo_plugin*, const pavo_values*, const pavo_tensor*, pavo_pack_info*, pavo_error* error) {
  // TODO(null): size and alignment of your layout; in_place = 1 if the file's bytes will do
  return fail(error, PAVO_ERROR_UNSUPPORTED, "no op reads weights");
}

int32_t device_open(pavo_plugin*, const pavo_string* id, pavo_device** out, pavo_error* error) {
  if (id == nullptr || pavo::sdk::view(*id) != "null") {
    return fail(error, PAVO_ERROR_NO_DEVICE, "there is only the device 'null'");
  }
  return make(out, error);
}

int32_t device_memory(pavo_device* device, pavo_memory_info* info, pavo_error* error) {
  if (info == nullptr || info->struct_size < sizeof(pavo_memory_info)) {
    return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "expected a whole pavo_memory_info");
  }
  info->total_bytes = info->free_bytes = 0;  // TODO(null): as your driver says now
  info->used_bytes = device->used_bytes;
  return PAVO_OK;
}

int32_t device_self_test(pavo_device*, pavo_error* error) {
  // TODO(null): run one kernel and check what it computed; until then the device is not usable
  return fail(error, PAVO_ERROR_UNSUPPORTED, "there is no kernel to test");
}

int32_t buffer_create(
    pavo_device* device, int64_t size, int32_t kind, pavo_buffer** out, pavo_error* error) {
  if (size < 0 || (kind != PAVO_MEMORY_DEVICE && kind != PAVO_MEMORY_HOST)) {
    return fail(
        error, PAVO_ERROR_INVALID_ARGUMENT, "no %" PRId64 " bytes of memory kind %d", size, kind);
  }
  // TODO(null): device memory; a size that is not to be had is a status, never an abort
  void* data = g_host->alloc(g_host->context, static_cast<uint64_t>(size), 64);
  if (data == nullptr || make(out, error) != PAVO_OK) {
    return fail(error, PAVO_ERROR_OUT_OF_MEMORY, "no memory for %" PRId64 " bytes", size);
  }
  **out = {device, static_cast<char*>(data), size};
  device->used_bytes += size;
  return PAVO_OK;
}

void buffer_destroy(pavo_buffer* buffer) {
  if (buffer != nullptr) {
    buffer->device->used_bytes -= buffer->size;
    g_host->free(g_host->context, buffer->data, static_cast<uint64_t>(buffer->size));
    delete buffer;
  }
}

// TODO(null): NULL if the host cannot see your memory
void* buffer_host(pavo_buffer* buffer) {
  return buffer->data;
}

int32_t pack(
    pavo_device*,
    const pavo_tensor*,
    const pavo_binding*,
    const void*,
    int64_t,
    int64_t,
    pavo_error* error) {
  return fail(error, PAVO_ERROR_UNSUPPORTED, "no op reads weights");  // TODO(null)
}

int32_t timeline_create(pavo_device*, pavo_timeline** out, pavo_error* error) {
  return make(out, error);
}

int32_t timeline_wait(pavo_timeline* timeline, uint64_t value, int64_t, pavo_error* error) {
  // TODO(null): block until the value is reached; all work here is done when its call returns
  return timeline->value >= value ? PAVO_OK
                                  : fail(error, PAVO_ERROR_TIMEOUT, "no work will raise it");
}

// Of one side of a region: true if all of its bytes are there.
bool in_bounds(
    const pavo_copy_region& r,
    const pavo_buffer* buffer,
    const void* host,
    int64_t offset,
    int64_t pitch) {
  int64_t end = 0;
  if (r.rows < 0 || r.row_bytes < 0 || offset < 0 || (r.rows > 1 && pitch < r.row_bytes) ||
      __builtin_mul_overflow(r.rows > 0 ? r.rows - 1 : 0, pitch, &end) ||
      __builtin_add_overflow(end, r.row_bytes, &end) || __builtin_add_overflow(end, offset, &end)) {
    return false;
  }
  return r.rows == 0 || (buffer != nullptr ? end <= buffer->size : host != nullptr);
}

int32_t copy(
    pavo_device*,
    const pavo_copy_region* regions,
    uint32_t count,
    const pavo_fence*,
    uint32_t,
    const pavo_fence* signals,
    uint32_t signal_count,
    pavo_error* error) {
  for (const pavo_copy_region* r = regions; r != regions + count; ++r) {
    if (!in_bounds(*r, r->src, r->src_host, r->src_offset, r->src_pitch) ||
        !in_bounds(*r, r->dst, r->dst_host, r->dst_offset, r->dst_pitch)) {
      return fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "region %d leaves its buffer, or has impossible sizes",
          static_cast<int>(r - regions));
    }
  }
  // TODO(null): on your queue, after the fences
  for (const pavo_copy_region* r = regions; r != regions + count; ++r) {
    const char* src = r->src != nullptr ? r->src->data : static_cast<const char*>(r->src_host);
    char* dst = r->dst != nullptr ? r->dst->data : static_cast<char*>(r->dst_host);
    for (int64_t row = 0; row < r->rows; ++row) {
      std::memcpy(
          dst + r->dst_offset + row * r->dst_pitch,
          src + r->src_offset + row * r->src_pitch,
          static_cast<size_t>(r->row_bytes));
    }
  }
  for (uint32_t i = 0; i < signal_count; ++i) {
    signals[i].timeline->value = signals[i].value;
  }
  return PAVO_OK;
}

int32_t plan_create(
    pavo_device*, const pavo_graph*, pavo_plan**, pavo_plan_info*, pavo_error* error) {
  // TODO(null): choose kernels with the same predicate that query_nodes asks
  return fail(error, PAVO_ERROR_UNSUPPORTED, "no node was accepted");
}

void plan_destroy(pavo_plan*) {}  // TODO(null)

int32_t submit(pavo_plan*, const pavo_submit*, pavo_error* error) {
  return fail(error, PAVO_ERROR_UNSUPPORTED, "there are no plans");  // TODO(null)
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
  g_host = host;
  // clang-format off
  static const pavo_plugin_api api = {
      sizeof(pavo_plugin_api), PAVO_ABI_MAJOR, minor, 0,
      pavo::sdk::string("null"), pavo::sdk::string("0.1.0"),
      options, plugin_create, destroy<pavo_plugin>, device_count, device_info, query_nodes, pack_info,
      device_open, destroy<pavo_device>, device_memory, device_self_test,
      buffer_create, nullptr /* buffer_import: optional */, buffer_destroy, buffer_host, pack,
      timeline_create, destroy<pavo_timeline>, timeline_wait, copy,
      plan_create, plan_destroy, submit, nullptr /* plan_timings: optional */};
  // clang-format on
  *out = &api;
  return PAVO_OK;
}
