// The table of the C ABI over the classes of plugin_base.h: one noexcept trampoline a function; and
// PAVO_PLUGIN, which defines the exported function.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pavo/plugin_handles.h"

namespace pavo::sdk {

// kInfo: gives the same object every time.
template <const PluginInfo& (*kInfo)()>
struct Entry {
  static int32_t options(
      const pavo_option_info* const** out, uint32_t* count, pavo_error* error) noexcept {
    return border(error, [&] {
      static const std::vector<pavo_option_info> infos = [] {
        std::vector<pavo_option_info> list;
        for (const Option& option : kInfo().options) {
          list.push_back(
              {sizeof(pavo_option_info),
               option.type,
               string(option.key),
               string(option.text),
               string(option.value)});
        }
        return list;
      }();
      static const std::vector<const pavo_option_info*> pointers = [] {
        std::vector<const pavo_option_info*> list;
        list.reserve(infos.size());
        for (const pavo_option_info& info : infos) {
          list.push_back(&info);
        }
        return list;
      }();
      *out = pointers.data();
      *count = static_cast<uint32_t>(pointers.size());
    });
  }

  static int32_t plugin_create(
      const pavo_values* values, pavo_plugin** out, pavo_error* error) noexcept {
    return border(error, [&] {
      auto plugin = std::make_unique<pavo_plugin>();
      plugin->self = kInfo().create(OptionValues(kInfo().options, values));
      *out = plugin.release();
    });
  }

  static int32_t device_count(pavo_plugin* plugin, uint32_t* count, pavo_error* error) noexcept {
    return border(error, [&] { *count = static_cast<uint32_t>(plugin->list().size()); });
  }

  static int32_t device_info(
      pavo_plugin* plugin, uint32_t index, pavo_device_info* info, pavo_error* error) noexcept {
    return border(error, [&] {
      expect_whole(info, "pavo_device_info");
      const auto& devices = plugin->list();
      if (index >= devices.size()) {
        raise(
            PAVO_ERROR_INVALID_ARGUMENT,
            "expected a device below %zu, got %u",
            devices.size(),
            index);
      }
      const DeviceFacts& facts = devices[index];
      info->ordinal = static_cast<int32_t>(index);
      info->id = string(facts.id);
      info->name = string(facts.name);
      info->caps = facts.caps.list();
    });
  }

  static void query_node(
      const pavo_plugin& plugin,
      const GraphCopy& graph,
      const pavo_values* caps,
      uint32_t index,
      pavo_verdict* verdict) {
    const NodeQuery query(caps, graph.graph(), *graph.graph().nodes[index]);
    if (!graph.fault(index).empty()) {
      refuse(verdict, PAVO_REASON_PARAM, -1, -1, 0, 0, "%s", graph.fault(index).c_str());
    } else if (check_node(query, verdict)) {
      plugin.self->query(query, verdict);
    }
  }

  static int32_t query_nodes(
      pavo_plugin* plugin,
      const pavo_values* caps,
      const pavo_graph* graph,
      pavo_verdict* const* verdicts,
      pavo_error* error) noexcept {
    return border(error, [&] {
      const GraphCopy copy(graph);
      for (uint32_t i = 0; i < copy.graph().node_count; ++i) {
        pavo_verdict verdict{};
        verdict.struct_size = sizeof verdict;
        clear_verdict(&verdict);
        query_node(*plugin, copy, caps, i, &verdict);
        // The host's struct may be of another minor.
        const uint32_t size = verdicts[i]->struct_size;
        std::memcpy(verdicts[i], &verdict, std::min<size_t>(size, sizeof verdict));
        verdicts[i]->struct_size = size;
      }
    });
  }

  static int32_t pack_info(
      pavo_plugin* plugin,
      const pavo_values* caps,
      const pavo_tensor* tensor,
      pavo_pack_info* info,
      pavo_error* error) noexcept {
    return border(error, [&] {
      expect_whole(info, "pavo_pack_info");
      pavo_tensor known{};
      read_or_raise(tensor, &known, "pavo_tensor");
      check_weight(known);
      const PackForm form = plugin->self->pack_form(caps, known);
      info->in_place = form.in_place ? 1 : 0;
      info->size_bytes = form.size_bytes;
      info->alignment = form.alignment;
    });
  }

  static int32_t device_open(
      pavo_plugin* plugin, const pavo_string* id, pavo_device** out, pavo_error* error) noexcept {
    return border(error, [&] {
      const std::string wanted(id == nullptr ? std::string_view() : view(*id));
      for (const DeviceFacts& facts : plugin->list()) {
        if (facts.id == wanted) {
          auto device = std::make_unique<pavo_device>();
          device->self = plugin->self->open_device(facts);
          device->plugin = plugin;
          device->caps = facts.caps.list();
          *out = device.release();
          return;
        }
      }
      raise(PAVO_ERROR_NO_DEVICE, "there is no device '%.100s'", wanted.c_str());
    });
  }

  static int32_t device_memory(
      pavo_device* device, pavo_memory_info* info, pavo_error* error) noexcept {
    return border(error, [&] {
      expect_whole(info, "pavo_memory_info");
      const MemoryInfo memory = device->self->memory();
      info->total_bytes = memory.total_bytes;
      info->free_bytes = memory.free_bytes;
      info->used_bytes = memory.used_bytes;
    });
  }

  static int32_t device_self_test(pavo_device* device, pavo_error* error) noexcept {
    return border(error, [&] { device->self->self_test(); });
  }

  static int32_t buffer_create(
      pavo_device* device,
      int64_t size,
      int32_t kind,
      pavo_buffer** out,
      pavo_error* error) noexcept {
    return border(error, [&] {
      if (size < 0 || (kind != PAVO_MEMORY_DEVICE && kind != PAVO_MEMORY_HOST)) {
        raise(
            PAVO_ERROR_INVALID_ARGUMENT,
            "expected a size of at least 0 and a kind of memory,"
            " got %" PRId64 " bytes of kind %d",
            size,
            kind);
      }
      auto buffer = std::make_unique<pavo_buffer>();
      buffer->self = device->self->create_buffer(size, kind);
      *out = buffer.release();
    });
  }

  static void* buffer_host(pavo_buffer* buffer) noexcept { return buffer->self->host_address(); }

  static int32_t pack(
      pavo_device* device,
      const pavo_tensor* tensor,
      const pavo_binding* target,
      const void* src,
      int64_t row_begin,
      int64_t rows,
      pavo_error* error) noexcept {
    return border(error, [&] {
      pavo_tensor known{};
      read_or_raise(tensor, &known, "pavo_tensor");
      check_weight(known);
      const int64_t all = row_count(known);
      if (row_begin < 0 || rows < 0 || row_begin > all || rows > all - row_begin) {
        raise(
            PAVO_ERROR_INVALID_ARGUMENT,
            "expected rows of 0..%" PRId64 ", got %" PRId64 " from %" PRId64,
            all,
            rows,
            row_begin);
      }
      const PackForm form = device->plugin->self->pack_form(device->caps, known);
      if (target == nullptr || target->buffer == nullptr || target->offset < 0 ||
          target->offset > target->buffer->self->size_bytes() - form.size_bytes) {
        raise(
            PAVO_ERROR_INVALID_ARGUMENT,
            "expected room for %" PRId64 " bytes in the target",
            form.size_bytes);
      }
      device->self->pack(known, *target, src, row_begin, rows);
    });
  }

  static int32_t timeline_create(
      pavo_device* device, pavo_timeline** out, pavo_error* error) noexcept {
    return border(error, [&] {
      auto timeline = std::make_unique<pavo_timeline>();
      timeline->self = device->self->create_timeline();
      *out = timeline.release();
    });
  }

  static int32_t timeline_wait(
      pavo_timeline* timeline, uint64_t value, int64_t timeout_ns, pavo_error* error) noexcept {
    return border(error, [&] { timeline->self->wait(value, timeout_ns); });
  }

  static int32_t copy(
      pavo_device* device,
      const pavo_copy_region* regions,
      uint32_t count,
      const pavo_fence* waits,
      uint32_t wait_count,
      const pavo_fence* signals,
      uint32_t signal_count,
      pavo_error* error) noexcept {
    return border(error, [&] {
      check_regions(regions, count);
      device->self->copy(regions, count, {waits, wait_count, signals, signal_count});
    });
  }

  static int32_t plan_create(
      pavo_device* device,
      const pavo_graph* graph,
      pavo_plan** out,
      pavo_plan_info* info,
      pavo_error* error) noexcept {
    return border(error, [&] {
      expect_whole(info, "pavo_plan_info");
      auto copy = std::make_shared<const GraphCopy>(graph);
      for (uint32_t i = 0; i < copy->graph().node_count; ++i) {
        pavo_verdict verdict{};
        verdict.struct_size = sizeof verdict;
        clear_verdict(&verdict);
        query_node(*device->plugin, *copy, device->caps, i, &verdict);
        if (verdict.decision == PAVO_REFUSE) {
          raise(PAVO_ERROR_UNSUPPORTED, "node %u: %s", i, verdict.text);
        }
      }
      const uint32_t tensors = copy->graph().tensor_count;
      auto plan = std::make_unique<pavo_plan>();
      plan->self = device->self->create_plan(std::move(copy));
      plan->tensor_count = tensors;
      info->launches = plan->self->launches();
      info->workspace_bytes = plan->self->workspace_bytes();
      *out = plan.release();
    });
  }

  static int32_t submit(pavo_plan* plan, const pavo_submit* submit, pavo_error* error) noexcept {
    return border(error, [&] {
      pavo_submit known{};
      read_or_raise(submit, &known, "pavo_submit");
      if (known.binding_count != plan->tensor_count) {
        raise(
            PAVO_ERROR_INVALID_ARGUMENT,
            "expected a binding for each of %u tensors, got %u",
            plan->tensor_count,
            known.binding_count);
      }
      plan->self->submit(known);
    });
  }

  static int32_t query(
      uint32_t abi_major,
      uint32_t host_min_minor,
      uint32_t host_max_minor,
      const pavo_host_api* given,
      const pavo_plugin_api** out,
      pavo_error* error) noexcept {
    uint32_t minor = 0;
    const int32_t code = negotiate(abi_major, host_min_minor, host_max_minor, &minor, error);
    if (code != PAVO_OK) {
      return code;
    }
    return border(error, [&] {
      host() = given;
      // clang-format off
      static const pavo_plugin_api api = {
          sizeof(pavo_plugin_api), PAVO_ABI_MAJOR, minor, 0, string(kInfo().id),
          string(kInfo().version), options, plugin_create, destroy<pavo_plugin>, device_count,
          device_info, query_nodes, pack_info, device_open, destroy<pavo_device>, device_memory,
          device_self_test, buffer_create, nullptr /* buffer_import: optional */,
          destroy<pavo_buffer>, buffer_host, pack, timeline_create, destroy<pavo_timeline>,
          timeline_wait, copy, plan_create, destroy<pavo_plan>, submit,
          nullptr /* plan_timings: optional */};
      // clang-format on
      *out = &api;
    });
  }
};

}  // namespace pavo::sdk

// Defines the only exported symbol. `info`: const PluginInfo& info(), called often.
#define PAVO_PLUGIN(info)                                             \
  int32_t pavo_plugin_query(                                          \
      uint32_t abi_major,                                             \
      uint32_t host_min_minor,                                        \
      uint32_t host_max_minor,                                        \
      const pavo_host_api* host,                                      \
      const pavo_plugin_api** out,                                    \
      pavo_error* error) {                                            \
    return pavo::sdk::Entry<info>::query(                             \
        abi_major, host_min_minor, host_max_minor, host, out, error); \
  }                                                                   \
  static_assert(PAVO_ABI_MAJOR == 0, "made for ABI 0")
