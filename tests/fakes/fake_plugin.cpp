// One small plugin, built many times: each copy breaks one rule (PAVO_FAKE_FAULT) or claims other
// facts in its note. Without a fault it is a correct plugin of one device that accepts no node.
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <unistd.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "pavo/plugin.h"
#include "pavo/plugin_helpers.h"

enum class Fault {
  kNone,
  kRefuseVersion,
  kIgnoreVersions,
  kLieMajor,
  kShortTable,
  kLongTable,
  kNullTable,
  kNullFunction,
  kOtherId,
  kTrapInConstructor,
  kHangInConstructor,
  kExitInConstructor,
  kThrowInConstructor,
  kPrintInConstructor,
  kHandlerInConstructor,
  kThreadInConstructor,
  kFlushInConstructor,  // denormals, as -ffast-math does
  kGarbleInConstructor,
  kTrapInHost,
  kHangInHost,
  kTrapInQuery,
  kThrowInQuery,
  kThrowInCreate,
  kFailCreate,
  kEndlessDeviceList,
  kEmptyDeviceId,
  kTwiceSameDevice,
  kRivalDevice,  // lists a device that the good copy lists too
  kFailOpen,
  kTrapInMemory,
  kHangInSelfTest,
  kAbortInSelfTest,
  kFailSelfTest,
  kThrowInSelfTest,
  kCrashAtExit,
};
constexpr Fault kFault = Fault::PAVO_FAKE_FAULT;

PAVO_PLUGIN_NOTE(PAVO_FAKE_NOTE);

struct pavo_plugin {
  std::vector<std::string> devices;
};
struct pavo_device {
  int64_t used_bytes = 0;
};
struct pavo_timeline {};

namespace {

using pavo::sdk::fail;

[[noreturn]] void hang() {
  for (;;) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
  }
}

void handler(int) {}

bool in_probe() {
  return std::strcmp(program_invocation_short_name, "pavo-probe") == 0;
}

__attribute__((constructor)) void constructor() {
  switch (kFault) {
    case Fault::kTrapInConstructor:
      __builtin_trap();
    case Fault::kHangInConstructor:
      hang();
    case Fault::kExitInConstructor:
      std::exit(0);
    case Fault::kThrowInConstructor:
      throw std::runtime_error("thrown while loading");
    case Fault::kPrintInConstructor:
      std::puts("a plugin was here");
      std::fflush(stdout);
      return;
    case Fault::kHandlerInConstructor:
      std::signal(SIGINT, handler);
      return;
    case Fault::kThreadInConstructor:
      std::thread(hang).detach();
      return;
    case Fault::kFlushInConstructor:
#if defined(__SSE__)
      _mm_setcsr(_mm_getcsr() | 0x8040);
#endif
      return;
    case Fault::kGarbleInConstructor:
      for (int fd = 3; fd < 256; ++fd) {
        if (::write(fd, "{\"garbage\":\n", 12) < 0) {
          continue;
        }
      }
      return;
    case Fault::kTrapInHost:
      if (!in_probe()) {
        __builtin_trap();
      }
      return;
    case Fault::kHangInHost:
      if (!in_probe()) {
        hang();
      }
      return;
    case Fault::kCrashAtExit:
      std::atexit([] { std::abort(); });
      return;
    default:
      return;
  }
}

int32_t options(const pavo_option_info* const** out, uint32_t* count, pavo_error*) {
  *out = nullptr;
  *count = 0;
  return PAVO_OK;
}

// kind=cuda copies serve the devices that PAVO_FAKE_DEVICES lists (ids, ',' between them).
std::vector<std::string> device_ids() {
  const char* list = std::getenv("PAVO_FAKE_DEVICES");
  if (std::strstr(PAVO_FAKE_NOTE, "kind=cuda") == nullptr) {
    return {kFault == Fault::kRivalDevice ? "fake-good-0" : PAVO_FAKE_ID "-0"};
  }
  std::vector<std::string> ids;
  std::string rest = list == nullptr ? "" : list;
  while (!rest.empty()) {
    const size_t at = std::min(rest.find(','), rest.size());
    ids.push_back(rest.substr(0, at));
    rest.erase(0, at + 1);
  }
  return ids;
}

int32_t plugin_create(const pavo_values* values, pavo_plugin** out, pavo_error* error) {
  if (kFault == Fault::kThrowInCreate) {
    throw std::runtime_error("thrown across the ABI");
  }
  if (kFault == Fault::kFailCreate) {
    return fail(error, PAVO_ERROR_INTERNAL, "expected a good day, got a bad one");
  }
  if (values != nullptr && values->count > 0) {
    return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "expected no options");
  }
  *out = new pavo_plugin{device_ids()};
  if (kFault == Fault::kTwiceSameDevice) {
    (*out)->devices.push_back((*out)->devices[0]);
  }
  return PAVO_OK;
}

void plugin_destroy(pavo_plugin* plugin) {
  delete plugin;
}

int32_t device_count(pavo_plugin* plugin, uint32_t* count, pavo_error*) {
  *count = kFault == Fault::kEndlessDeviceList ? 4000000000u
                                               : static_cast<uint32_t>(plugin->devices.size());
  return PAVO_OK;
}

int32_t device_info(
    pavo_plugin* plugin, uint32_t index, pavo_device_info* info, pavo_error* error) {
  if (index >= plugin->devices.size()) {
    return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "no device %u", index);
  }
  static const pavo_values no_caps = {sizeof(pavo_values), 0, nullptr};
  info->ordinal = static_cast<int32_t>(index);
  info->id = pavo::sdk::string(plugin->devices[index]);
  if (kFault == Fault::kEmptyDeviceId) {
    info->id.size = 0;
  }
  info->name = pavo::sdk::string("a fake device");
  info->caps = &no_caps;
  return PAVO_OK;
}

int32_t query_nodes(
    pavo_plugin*,
    const pavo_values*,
    const pavo_graph* graph,
    pavo_verdict* const* verdicts,
    pavo_error*) {
  for (uint32_t i = 0; i < graph->node_count; ++i) {
    pavo::sdk::refuse(verdicts[i], PAVO_REASON_OP, -1, -1, 0, 0, "the fake plugin runs no op");
  }
  return PAVO_OK;
}

int32_t pack_info(
    pavo_plugin*, const pavo_values*, const pavo_tensor*, pavo_pack_info*, pavo_error* error) {
  return fail(error, PAVO_ERROR_UNSUPPORTED, "the fake plugin takes no weights");
}

int32_t device_open(
    pavo_plugin* plugin, const pavo_string* id, pavo_device** out, pavo_error* error) {
  for (const std::string& device : plugin->devices) {
    if (pavo::sdk::view(*id) == device && kFault != Fault::kFailOpen) {
      *out = new pavo_device;
      return PAVO_OK;
    }
  }
  return fail(error, PAVO_ERROR_NO_DEVICE, "no device %.*s", static_cast<int>(id->size), id->data);
}

void device_close(pavo_device* device) {
  delete device;
}

int32_t device_memory(pavo_device* device, pavo_memory_info* info, pavo_error*) {
  if (kFault == Fault::kTrapInMemory) {
    __builtin_trap();
  }
  info->total_bytes = 1 << 20;
  info->used_bytes = device->used_bytes;
  info->free_bytes = info->total_bytes - device->used_bytes;
  return PAVO_OK;
}

int32_t device_self_test(pavo_device*, pavo_error* error) {
  switch (kFault) {
    case Fault::kHangInSelfTest:
      hang();
    case Fault::kAbortInSelfTest:
      std::abort();
    case Fault::kFailSelfTest:
      return fail(error, PAVO_ERROR_NODE_FAILED, "expected the sum 3, got 4");
    case Fault::kThrowInSelfTest:
      throw std::runtime_error("thrown across the ABI");
    default:
      return PAVO_OK;
  }
}

int32_t unsupported(pavo_error* error) {
  return fail(error, PAVO_ERROR_UNSUPPORTED, "the fake plugin runs nothing");
}

int32_t buffer_create(pavo_device*, int64_t, int32_t, pavo_buffer**, pavo_error* error) {
  return unsupported(error);
}
void buffer_destroy(pavo_buffer*) {}
void* buffer_host(pavo_buffer*) {
  return nullptr;
}
int32_t pack(
    pavo_device*,
    const pavo_tensor*,
    const pavo_binding*,
    const void*,
    int64_t,
    int64_t,
    pavo_error* error) {
  return unsupported(error);
}
// A device is opened with a timeline, though nothing will ever signal it.
int32_t timeline_create(pavo_device*, pavo_timeline** out, pavo_error*) {
  *out = new pavo_timeline;
  return PAVO_OK;
}
void timeline_destroy(pavo_timeline* timeline) {
  delete timeline;
}
int32_t timeline_wait(pavo_timeline*, uint64_t, int64_t, pavo_error* error) {
  return unsupported(error);
}
int32_t copy(
    pavo_device*,
    const pavo_copy_region*,
    uint32_t,
    const pavo_fence*,
    uint32_t,
    const pavo_fence*,
    uint32_t,
    pavo_error* error) {
  return unsupported(error);
}
int32_t plan_create(
    pavo_device*, const pavo_graph*, pavo_plan**, pavo_plan_info*, pavo_error* error) {
  return unsupported(error);
}
void plan_destroy(pavo_plan*) {}
int32_t submit(pavo_plan*, const pavo_submit*, pavo_error* error) {
  return unsupported(error);
}

// A table with room behind it, for the copy that claims more than the ABI has.
struct LongTable {
  pavo_plugin_api api;
  uint64_t tail;
};

LongTable make_table() {
  LongTable table = {};
  pavo_plugin_api& api = table.api;
  api.struct_size = sizeof api;
  api.abi_major = kFault == Fault::kLieMajor ? PAVO_ABI_MAJOR + 1 : PAVO_ABI_MAJOR;
  api.abi_minor = PAVO_ABI_MINOR;
  api.id = pavo::sdk::string(kFault == Fault::kOtherId ? "somebody-else" : PAVO_FAKE_ID);
  api.version = pavo::sdk::string("1.2.3");
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
  api.submit = kFault == Fault::kNullFunction ? nullptr : submit;
  if (kFault == Fault::kShortTable) {
    api.struct_size = 64;
  }
  if (kFault == Fault::kLongTable) {
    api.struct_size = sizeof table;
    table.tail = 1;
  }
  return table;
}

}  // namespace

extern "C" int32_t pavo_plugin_query(
    uint32_t abi_major,
    uint32_t host_min_minor,
    uint32_t host_max_minor,
    const pavo_host_api* host,
    const pavo_plugin_api** out,
    pavo_error* error) {
  static const LongTable table = make_table();
  uint32_t minor = 0;
  const uint32_t major = kFault == Fault::kRefuseVersion ? abi_major + 1 : abi_major;
  const int32_t code = pavo::sdk::negotiate(major, host_min_minor, host_max_minor, &minor, error);
  if (code != PAVO_OK && kFault != Fault::kIgnoreVersions) {
    return code;
  }
  if (kFault == Fault::kTrapInQuery) {
    __builtin_trap();
  }
  if (kFault == Fault::kThrowInQuery) {
    throw std::runtime_error("thrown across the ABI");
  }
  const std::string greeting = "hello";
  host->log(host->context, PAVO_LOG_DEBUG, greeting.data(), greeting.size());
  *out = kFault == Fault::kNullTable ? nullptr : &table.api;
  return PAVO_OK;
}
