// The mock device: memory that the host cannot touch, one queue for copies and one for runs, and a
// CPU plugin inside that does the work. Its handles are the mock's own; the ABI's struct names
// belong to the CPU plugin that is linked in.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pavo/plugin.h"

#include "tests/fakes/mock/queue.h"
#include "tests/fakes/mock/rules.h"

namespace pavo::mock {

extern const pavo_host_api* host_api;     // of the program; likewise
extern const pavo_plugin_api* inner_api;  // of the CPU plugin inside; set by pavo_plugin_query

// Sets both. The CPU plugin's memory are the mock's pages.
int32_t load_inner(const pavo_host_api* host, pavo_error* error);

struct Options {
  int64_t latency_us = 0;
  int64_t memory_bytes = int64_t{1} << 32;
  int64_t devices = 1;
  int64_t one_queue = 0;
};

// A plugin instance.
class Instance {
 public:
  static Instance* of(pavo_plugin* handle) { return reinterpret_cast<Instance*>(handle); }
  ~Instance();

  int32_t init(const pavo_values* values, pavo_error* error);

  Options options;
  Rules rules;
  pavo_plugin* inner = nullptr;
  std::vector<std::string> ids;
  std::vector<pavo_value> cap_items;
  std::vector<const pavo_value*> cap_pointers;
  pavo_values caps = {};
};

struct Buffer {
  static Buffer* of(pavo_buffer* handle) { return reinterpret_cast<Buffer*>(handle); }
  Device* device = nullptr;
  pavo_buffer* inner = nullptr;
  const void* pages = nullptr;  // NULL: empty
  int64_t size = 0;
  bool visible = false;
};

// What is kept of a plan's graph.
struct TensorFacts {
  int32_t role = 0;
  int32_t rank = 0;
  int64_t shape[PAVO_MAX_RANK] = {};
  int64_t stride[PAVO_MAX_RANK] = {};
  int64_t bytes = 0;  // from the bound address to the end; of pools unknown (0)
};
struct GraphFacts {
  std::vector<TensorFacts> tensors;
  std::vector<uint32_t> inputs;  // of the first node, those that are there
  std::vector<uint32_t> outputs;
};

struct Plan {
  static Plan* of(pavo_plan* handle) { return reinterpret_cast<Plan*>(handle); }
  Device* device = nullptr;
  pavo_plan* inner = nullptr;
  int64_t workspace_bytes = 0;
  GraphFacts graph;
};

class Device {
 public:
  static Device* of(pavo_device* handle) { return reinterpret_cast<Device*>(handle); }
  Device(Instance* instance, pavo_device* inner);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  Instance& instance() { return *instance_; }
  pavo_device* inner() { return inner_; }
  int64_t used_bytes() const { return used_; }

  int32_t create_buffer(int64_t size, int32_t kind, Buffer** out, pavo_error* error);
  void destroy_buffer(Buffer* buffer);
  int32_t copy(
      const pavo_copy_region* regions,
      uint32_t count,
      const std::vector<pavo_fence>& waits,
      const std::vector<pavo_fence>& signals,
      FaultKind late,
      pavo_error* error);
  int32_t submit(Plan* plan, const pavo_submit& submit, FaultKind late, pavo_error* error);
  void drain();

 private:
  int32_t check_fences(
      const std::vector<pavo_fence>& waits,
      const std::vector<pavo_fence>& signals,
      pavo_error* error) const;
  int32_t run(FaultKind late, const std::function<int32_t(pavo_error*)>& body, pavo_error* error);

  Instance* instance_;
  pavo_device* inner_;
  std::atomic<int64_t> used_{0};
  std::atomic<bool> lost_{false};
  std::unique_ptr<Queue> runs_;
  std::unique_ptr<Queue> copies_;  // NULL: the same queue
  void* host_memory_ = nullptr;
};

}  // namespace pavo::mock
