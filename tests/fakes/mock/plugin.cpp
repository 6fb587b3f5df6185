// The table of the mock device. Every entry counts its calls and lets a fault happen first.
#include "pavo/plugin.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

#include "pavo/plugin_helpers.h"

#include "tests/fakes/mock/breaks.h"
#include "tests/fakes/mock/device.h"
#include "tests/fakes/mock/options.h"
#include "tests/fakes/mock/pages.h"

PAVO_PLUGIN_NOTE(
    "id=mock\nversion=0.1.0\nvendor=Pavo\nlicense=Apache-2.0\nabi=0.1-1\nkind=other\n");

namespace {

using pavo::mock::act_on;
using pavo::mock::breaks;
using pavo::mock::Buffer;
using pavo::mock::Device;
using pavo::mock::FaultKind;
using pavo::mock::inner_api;
using pavo::mock::Instance;
using pavo::mock::Pages;
using pavo::mock::Plan;
using pavo::mock::Timeline;
using pavo::mock::VisibleScope;
using pavo::sdk::fail;
using pavo::sdk::guard;

// Runs `body(late)` unless the call is told to fail. An exception of the fault itself escapes.
template <typename Body>
int32_t call(Instance& instance, const char* name, pavo_error* error, Body&& body) {
  int32_t code = PAVO_OK;
  const FaultKind late = act_on(instance.rules.count(name), name, &code, error);
  return code != PAVO_OK ? code : guard(error, [&]() -> int32_t { return body(late); });
}

int32_t options(const pavo_option_info* const** out, uint32_t* count, pavo_error* error) {
  return guard(error, [&] { return pavo::mock::list_options(out, count, error); });
}

int32_t plugin_create(const pavo_values* values, pavo_plugin** out, pavo_error* error) {
  std::unique_ptr<Instance> instance;
  const int32_t made = guard(error, [&] {
    instance = std::make_unique<Instance>();
    return instance->init(values, error);
  });
  if (made != PAVO_OK) {
    return made;
  }
  return call(*instance, "plugin_create", error, [&](FaultKind) {
    *out = reinterpret_cast<pavo_plugin*>(instance.release());
    return PAVO_OK;
  });
}

void plugin_destroy(pavo_plugin* plugin) {
  delete Instance::of(plugin);
}

int32_t device_count(pavo_plugin* plugin, uint32_t* count, pavo_error* error) {
  return call(*Instance::of(plugin), "device_count", error, [&](FaultKind) {
    *count = static_cast<uint32_t>(Instance::of(plugin)->ids.size());
    if (breaks("early_thread")) {
      std::thread([] { std::this_thread::sleep_for(std::chrono::hours(1)); }).detach();
    } else if (breaks("change_device_list")) {
      static std::atomic<uint32_t> calls{0};
      *count = ++calls % 2 == 0 ? 0 : *count;
    }
    return PAVO_OK;
  });
}

int32_t device_info(
    pavo_plugin* plugin, uint32_t index, pavo_device_info* info, pavo_error* error) {
  const Instance* instance = Instance::of(plugin);
  if (index >= instance->ids.size() || info == nullptr || info->struct_size < sizeof *info) {
    return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "expected an index of a device, got %u", index);
  }
  info->ordinal = static_cast<int32_t>(index);
  info->id = pavo::sdk::string(instance->ids[index]);
  info->name = pavo::sdk::string("Mock device");
  info->caps = &instance->caps;
  return PAVO_OK;
}

int32_t query_nodes(
    pavo_plugin* plugin,
    const pavo_values* caps,
    const pavo_graph* graph,
    pavo_verdict* const* verdicts,
    pavo_error* error) {
  Instance& instance = *Instance::of(plugin);
  return call(instance, "query_nodes", error, [&](FaultKind) {
    const pavo::mock::CutGraph cut(*graph);
    const pavo_graph* asked = breaks("ignore_tensor_tail") ? cut.get() : graph;
    std::vector<pavo_verdict> unseen(graph->node_count, *verdicts[0]);
    std::vector<pavo_verdict*> targets(verdicts, verdicts + graph->node_count);
    for (uint32_t i = 1; breaks("answer_first_only") && i < graph->node_count; ++i) {
      targets[i] = &unseen[i];
    }
    const int32_t code = inner_api->query_nodes(instance.inner, caps, asked, targets.data(), error);
    if (breaks("share_verdict")) {
      pavo::mock::share_verdict(targets[0]);
    }
    for (uint32_t i = 0; code == PAVO_OK && i < graph->node_count; ++i) {
      instance.rules.apply(*graph, *graph->nodes[i], targets[i]);
      pavo::mock::break_verdict(*graph, targets[i]);
    }
    return code;
  });
}

int32_t pack_info(
    pavo_plugin* plugin,
    const pavo_values* caps,
    const pavo_tensor* tensor,
    pavo_pack_info* info,
    pavo_error* error) {
  Instance& instance = *Instance::of(plugin);
  return call(instance, "pack_info", error, [&](FaultKind) {
    const int32_t code = inner_api->pack_info(instance.inner, caps, tensor, info, error);
    if (code == PAVO_OK) {
      info->in_place = 0;  // the device sees no memory of the host
    }
    return code;
  });
}

int32_t device_open(
    pavo_plugin* plugin, const pavo_string* id, pavo_device** out, pavo_error* error) {
  Instance& instance = *Instance::of(plugin);
  return call(instance, "device_open", error, [&](FaultKind) -> int32_t {
    if (breaks("print")) {
      std::puts("the mock was here");
    }
    for (const std::string& known : instance.ids) {
      if (id != nullptr && pavo::sdk::view(*id) == known) {
        const pavo_string inner_id = pavo::sdk::string("cpu");
        pavo_device* inner = nullptr;
        const int32_t code = inner_api->device_open(instance.inner, &inner_id, &inner, error);
        if (code == PAVO_OK) {
          *out = reinterpret_cast<pavo_device*>(new Device(&instance, inner));
        }
        return code;
      }
    }
    int32_t code =
        fail(error, PAVO_ERROR_NO_DEVICE, "the mock has no such device; it has mock-0 ...");
    pavo::mock::break_open_error(out, error, &code);
    return code;
  });
}

void device_close(pavo_device* device) {
  delete Device::of(device);
}

int32_t device_memory(pavo_device* device, pavo_memory_info* info, pavo_error* error) {
  Device& own = *Device::of(device);
  return call(own.instance(), "device_memory", error, [&](FaultKind) -> int32_t {
    if (info == nullptr || info->struct_size < sizeof *info) {
      return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "expected a whole pavo_memory_info");
    }
    info->total_bytes = own.instance().options.memory_bytes;
    info->used_bytes = breaks("count_no_memory") ? 0 : own.used_bytes();
    info->free_bytes = info->total_bytes - info->used_bytes;
    return PAVO_OK;
  });
}

int32_t device_self_test(pavo_device* device, pavo_error* error) {
  Device& own = *Device::of(device);
  return call(own.instance(), "device_self_test", error, [&](FaultKind) {
    if (breaks("exit_in_self_test")) {
      std::exit(0);
    }
    const VisibleScope visible;  // the test of the CPU plugin inside uses no queue
    return inner_api->device_self_test(own.inner(), error);
  });
}

int32_t buffer_create(
    pavo_device* device, int64_t size, int32_t kind, pavo_buffer** out, pavo_error* error) {
  Device& own = *Device::of(device);
  return call(own.instance(), "buffer_create", error, [&](FaultKind) {
    Buffer* buffer = nullptr;
    const int32_t code = own.create_buffer(size, kind, &buffer, error);
    if (code == PAVO_OK) {
      *out = reinterpret_cast<pavo_buffer*>(buffer);
    }
    return code;
  });
}

void buffer_destroy(pavo_buffer* buffer) {
  if (buffer != nullptr) {
    Buffer::of(buffer)->device->destroy_buffer(Buffer::of(buffer));
  }
}

void* buffer_host(pavo_buffer* buffer) {
  const Buffer* own = Buffer::of(buffer);
  return own->visible ? inner_api->buffer_host(own->inner) : nullptr;
}

int32_t pack(
    pavo_device* device,
    const pavo_tensor* tensor,
    const pavo_binding* target,
    const void* src,
    int64_t row_begin,
    int64_t row_count,
    pavo_error* error) {
  Device& own = *Device::of(device);
  return call(own.instance(), "pack", error, [&](FaultKind) -> int32_t {
    if (target == nullptr || target->buffer == nullptr) {
      return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "pack: expected a target");
    }
    const Buffer* buffer = Buffer::of(target->buffer);
    const pavo_binding inner = {buffer->inner, target->offset};
    if (buffer->pages != nullptr) {
      Pages::instance().open(buffer->pages);
    }
    const int32_t code =
        inner_api->pack(own.inner(), tensor, &inner, src, row_begin, row_count, error);
    if (buffer->pages != nullptr) {
      Pages::instance().close(buffer->pages);
    }
    return code != PAVO_OK && breaks("take_any_rows") ? PAVO_OK : code;
  });
}

int32_t timeline_create(pavo_device* device, pavo_timeline** out, pavo_error* error) {
  Device& own = *Device::of(device);
  return call(own.instance(), "timeline_create", error, [&](FaultKind) {
    *out = (new Timeline(&own))->handle();
    return PAVO_OK;
  });
}

void timeline_destroy(pavo_timeline* timeline) {
  delete Timeline::of(timeline);
}

int32_t timeline_wait(
    pavo_timeline* timeline, uint64_t value, int64_t timeout_ns, pavo_error* error) {
  Timeline& own = *Timeline::of(timeline);
  return call(own.device()->instance(), "timeline_wait", error, [&](FaultKind) {
    const int32_t code = own.wait(value, timeout_ns, error);
    return code == PAVO_ERROR_TIMEOUT && breaks("never_time_out") ? PAVO_OK : code;
  });
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
  Device& own = *Device::of(device);
  return call(own.instance(), "copy", error, [&](FaultKind late) {
    return own.copy(
        regions,
        region_count,
        {waits, waits + wait_count},
        {signals, signals + signal_count},
        late,
        error);
  });
}

int32_t plan_create(
    pavo_device* device,
    const pavo_graph* graph,
    pavo_plan** out,
    pavo_plan_info* info,
    pavo_error* error) {
  Device& own = *Device::of(device);
  return call(own.instance(), "plan_create", error, [&](FaultKind) -> int32_t {
    pavo_plan* inner = nullptr;
    const int32_t code = inner_api->plan_create(own.inner(), graph, &inner, info, error);
    if (code != PAVO_OK) {
      return code;
    }
    if (breaks("ignore_no_memory_in_plan")) {
      pavo::mock::use_memory_unchecked();
    }
    auto plan = std::make_unique<Plan>();
    plan->device = &own;
    plan->inner = inner;
    plan->workspace_bytes = info->workspace_bytes;
    plan->graph = pavo::mock::facts_of(*graph);
    for (uint32_t i = 0; !breaks("plan_refused_node") && i < graph->node_count; ++i) {
      pavo_verdict verdict = {};
      verdict.struct_size = sizeof verdict;
      verdict.decision = PAVO_ACCEPT;
      own.instance().rules.apply(*graph, *graph->nodes[i], &verdict);
      if (verdict.decision == PAVO_REFUSE) {
        inner_api->plan_destroy(inner);
        return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "node %u: %s", i, verdict.text);
      }
    }
    *out = reinterpret_cast<pavo_plan*>(plan.release());
    return PAVO_OK;
  });
}

void plan_destroy(pavo_plan* plan) {
  if (plan != nullptr) {
    inner_api->plan_destroy(Plan::of(plan)->inner);
    delete Plan::of(plan);
  }
}

int32_t submit(pavo_plan* plan, const pavo_submit* arguments, pavo_error* error) {
  Device& own = *Plan::of(plan)->device;
  return call(own.instance(), "submit", error, [&](FaultKind late) {
    pavo_submit known = {};
    const int32_t code =
        pavo::sdk::read_struct(arguments, &known, sizeof(pavo_submit), "pavo_submit", error);
    if (breaks("refuse_after_accept")) {
      return fail(error, PAVO_ERROR_UNSUPPORTED, "the mock has changed its mind");
    }
    return code == PAVO_OK ? own.submit(Plan::of(plan), known, late, error) : code;
  });
}

int32_t plan_timings(pavo_plan* plan, int64_t* node_ns, uint32_t node_count, pavo_error* error) {
  Device& own = *Plan::of(plan)->device;
  return call(own.instance(), "plan_timings", error, [&](FaultKind) {
    own.drain();
    return inner_api->plan_timings(Plan::of(plan)->inner, node_ns, node_count, error);
  });
}

pavo_plugin_api make_api(uint32_t minor) {
  pavo_plugin_api api = {};
  api.struct_size = sizeof api;
  api.abi_major = PAVO_ABI_MAJOR;
  api.abi_minor = minor;
  api.id = pavo::sdk::string("mock");
  api.version = pavo::sdk::string("0.1.0");
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
  const int32_t inner_code = pavo::mock::load_inner(host, error);
  static pavo_plugin_api api = make_api(minor);
  *out = inner_code == PAVO_OK ? &api : nullptr;
  return inner_code;
}
