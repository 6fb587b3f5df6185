// C++17: a device whose memory the host can see and whose work is done when its call returns. With
// it a plugin is a table of kernels and a self-test. docs/plugin-guide.md makes one.
//
// Weights stay as they are in the file. Work that fails raises its timelines all the same; the wait
// for the first of them tells the failure.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include "pavo/op_table.h"
#include "pavo/plugin_base.h"
#include "pavo/plugin_entry.h"

namespace pavo::sdk {

class HostBuffer final : public Buffer {
 public:
  HostBuffer(int64_t size_bytes, std::atomic<int64_t>* used_bytes)
      : Buffer(size_bytes), memory_(size_bytes), used_bytes_(used_bytes) {
    *used_bytes_ += size_bytes;
  }
  ~HostBuffer() override { *used_bytes_ -= size_bytes(); }
  void* host_address() override { return memory_.data(); }
  char* data() const { return memory_.data(); }

 private:
  HostMemory memory_;
  std::atomic<int64_t>* used_bytes_;
};

class HostTimeline final : public Timeline {
 public:
  void wait(uint64_t value, int64_t timeout_ns) override {
    std::unique_lock<std::mutex> lock(mutex_);
    const auto reached = [&] { return value_ >= value; };
    if (timeout_ns < 0) {
      raised_.wait(lock, reached);
    } else if (!raised_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), reached)) {
      raise(PAVO_ERROR_TIMEOUT, "the timeline is at %" PRIu64 ", expected %" PRIu64, value_, value);
    }
    if (!failures_.empty() && failures_.front().first <= value) {
      const Error failure = failures_.front().second;
      failures_.pop_front();
      throw failure;
    }
  }

  uint64_t value() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return value_;
  }

  void signal(uint64_t value, const std::optional<Error>& failure) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      value_ = value;
      if (failure) {
        failures_.emplace_back(value, *failure);
      }
    }
    raised_.notify_all();
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable raised_;
  uint64_t value_ = 0;
  std::deque<std::pair<uint64_t, Error>> failures_;
};

inline HostTimeline& timeline_of(const pavo_fence& fence) {
  if (fence.timeline == nullptr) {
    raise(PAVO_ERROR_INVALID_ARGUMENT, "expected a fence with a timeline");
  }
  return static_cast<HostTimeline&>(*fence.timeline->self);
}

// Does `work` between the fences.
template <typename Work>
void run_fenced(const Fences& fences, Work&& work) {
  for (uint32_t i = 0; i < fences.wait_count; ++i) {
    const pavo_fence& fence = fences.waits[i];
    if (timeline_of(fence).value() < fence.value) {
      raise(
          PAVO_ERROR_INVALID_ARGUMENT,
          "no queued work raises the timeline to %" PRIu64,
          fence.value);
    }
  }
  for (uint32_t i = 0; i < fences.signal_count; ++i) {
    const pavo_fence& fence = fences.signals[i];
    if (timeline_of(fence).value() >= fence.value) {
      raise(PAVO_ERROR_INVALID_ARGUMENT, "the timeline is beyond %" PRIu64 " already", fence.value);
    }
  }
  std::optional<Error> failure;
  try {
    work();
  } catch (const Error& error) {
    if (fences.signal_count == 0) {
      throw;
    }
    failure = error;
  }
  for (uint32_t i = 0; i < fences.signal_count; ++i) {
    timeline_of(fences.signals[i]).signal(fences.signals[i].value, failure);
    failure.reset();
  }
}

// Where a HostBuffer lies.
inline char* host_data(const pavo_buffer* buffer) {
  return static_cast<const HostBuffer&>(*buffer->self).data();
}

// Regions lie within their buffers.
inline void copy_on_host(const pavo_copy_region* regions, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    const pavo_copy_region& r = regions[i];
    const char* src = r.src == nullptr ? static_cast<const char*>(r.src_host) : host_data(r.src);
    char* dst = r.dst == nullptr ? static_cast<char*>(r.dst_host) : host_data(r.dst);
    for (int64_t row = 0; row < r.rows && r.row_bytes != 0; ++row) {
      std::memcpy(
          dst + r.dst_offset + row * r.dst_pitch,
          src + r.src_offset + row * r.src_pitch,
          static_cast<size_t>(r.row_bytes));
    }
  }
}

// Rows of an operand, flattened over all but the last dimension.
template <typename T>
class Rows {
 public:
  Rows(const pavo_tensor& tensor, T* data)
      : count(row_count(tensor)),
        length(tensor.shape[tensor.rank - 1]),
        tensor_(tensor),
        data_(data) {}

  T* operator[](int64_t row) const {
    if (!has_strides(tensor_)) {
      return data_ + row * length;
    }
    int64_t offset = 0;
    for (int32_t i = tensor_.rank - 2; i >= 0; --i) {
      offset += row % tensor_.shape[i] * tensor_.stride[i];
      row /= tensor_.shape[i];
    }
    return data_ + offset / static_cast<int64_t>(sizeof(T));
  }

  const int64_t count;
  const int64_t length;

 private:
  const pavo_tensor& tensor_;
  T* data_;
};

// A node that a kernel is to run. Values inside step tensors are whatever the host wrote: check
// each before it becomes an index.
class Launch {
 public:
  Launch(const NodeQuery& query, char* const* inputs, char* const* outputs)
      : query_(query), inputs_(inputs), outputs_(outputs) {}

  // NULL if it is absent.
  const pavo_tensor* tensor(Operand operand) const { return query_.tensor(operand); }
  template <typename Params>
  const Params& params() const {
    return query_.params<Params>();
  }
  // Of an operand that is there: weights as in the file, pools as in quant.h.
  char* data(Operand operand) const {
    return (operand.is_output ? outputs_ : inputs_)[operand.index];
  }
  // Of an operand for which dense_rows() holds.
  template <typename T>
  Rows<T> rows(Operand operand) const {
    return {*tensor(operand), reinterpret_cast<T*>(data(operand))};
  }

 private:
  const NodeQuery& query_;
  char* const* inputs_;
  char* const* outputs_;
};

// Raises PAVO_ERROR_NODE_FAILED if data (not shapes) make no sense.
using HostKernel = Kernel<void (*)(const Launch& launch)>;
using HostTable = OpTable<void (*)(const Launch& launch)>;

class HostPlan final : public Plan {
 public:
  // `table` and `caps` outlive it.
  HostPlan(std::shared_ptr<const GraphCopy> graph, const HostTable& table, const pavo_values* caps)
      : graph_(std::move(graph)) {
    for (uint32_t i = 0; i < graph_->graph().node_count; ++i) {
      pavo_verdict verdict{};
      verdict.struct_size = sizeof verdict;
      const NodeQuery query(caps, graph_->graph(), *graph_->graph().nodes[i]);
      const HostKernel* kernel = table.find(query, &verdict);
      if (kernel == nullptr) {
        raise(PAVO_ERROR_UNSUPPORTED, "node %u: %s", i, verdict.text);
      }
      steps_.push_back({kernel, query});
    }
  }

  int32_t launches() const override { return static_cast<int32_t>(steps_.size()); }

  void submit(const pavo_submit& submit) override {
    std::vector<std::vector<char*>> operands;
    for (const Step& step : steps_) {
      const pavo_node& node = step.query.node();
      operands.push_back(addresses(submit, node.inputs, node.input_count));
      operands.push_back(addresses(submit, node.outputs, node.output_count));
    }
    run_fenced({submit.waits, submit.wait_count, submit.signals, submit.signal_count}, [&] {
      for (size_t i = 0; i < steps_.size(); ++i) {
        steps_[i].kernel->run(
            Launch(steps_[i].query, operands[2 * i].data(), operands[2 * i + 1].data()));
      }
    });
  }

 private:
  struct Step {
    const HostKernel* kernel;
    NodeQuery query;
  };

  std::vector<char*> addresses(
      const pavo_submit& submit, const uint32_t* tensors, uint32_t count) const {
    std::vector<char*> list;
    for (uint32_t i = 0; i < count; ++i) {
      list.push_back(tensors[i] == PAVO_NO_TENSOR ? nullptr : address(submit, tensors[i]));
    }
    return list;
  }

  char* address(const pavo_submit& submit, uint32_t index) const {
    const pavo_tensor& tensor = *graph_->graph().tensors[index];
    const pavo_binding& binding = submit.bindings[index];
    const int64_t unit = has_strides(tensor) ? pavo_type_block_bytes(tensor.type) : 1;
    if (binding.buffer == nullptr || binding.offset < 0 || binding.offset % unit != 0 ||
        extent_bytes(tensor) > binding.buffer->self->size_bytes() - binding.offset) {
      raise(
          PAVO_ERROR_INVALID_ARGUMENT,
          "tensor %u is not bound to %" PRId64 " bytes of a buffer",
          index,
          extent_bytes(tensor));
    }
    return host_data(binding.buffer) + binding.offset;
  }

  std::shared_ptr<const GraphCopy> graph_;
  std::vector<Step> steps_;
};

class HostDevice final : public Device {
 public:
  HostDevice(const HostTable& table, const pavo_values* caps, void (*test)())
      : table_(table), caps_(caps), self_test_(test) {}

  MemoryInfo memory() override {
    const int64_t page = ::sysconf(_SC_PAGESIZE);
    return {page * ::sysconf(_SC_PHYS_PAGES), page * ::sysconf(_SC_AVPHYS_PAGES), used_bytes_};
  }
  void self_test() override { self_test_(); }
  std::unique_ptr<Buffer> create_buffer(int64_t size_bytes, int32_t /*kind*/) override {
    return std::make_unique<HostBuffer>(size_bytes, &used_bytes_);
  }
  std::unique_ptr<Timeline> create_timeline() override { return std::make_unique<HostTimeline>(); }

  void copy(const pavo_copy_region* regions, uint32_t count, const Fences& fences) override {
    run_fenced(fences, [&] { copy_on_host(regions, count); });
  }

  void pack(
      const pavo_tensor& tensor,
      const pavo_binding& target,
      const void* src,
      int64_t row_begin,
      int64_t row_count) override {
    const int64_t row_bytes = pavo_type_row_bytes(tensor.type, tensor.shape[tensor.rank - 1]);
    if (row_bytes * row_count != 0) {
      std::memcpy(
          host_data(target.buffer) + target.offset + row_begin * row_bytes,
          src,
          static_cast<size_t>(row_count * row_bytes));
    }
  }

  std::unique_ptr<Plan> create_plan(std::shared_ptr<const GraphCopy> graph) override {
    return std::make_unique<HostPlan>(std::move(graph), table_, caps_);
  }

 private:
  const HostTable& table_;
  const pavo_values* caps_;
  void (*self_test_)();
  std::atomic<int64_t> used_bytes_{0};
};

// One device of the plugin's own name, that runs the kernels of a table on the calling thread.
class HostPlugin final : public Plugin {
 public:
  // self_test raises PAVO_ERROR_INTERNAL if a kernel computes what it should not.
  HostPlugin(std::string id, HostTable table, void (*self_test)(), const OptionValues& options)
      : id_(std::move(id)), table_(std::move(table)), self_test_(self_test) {
    table_.use(options);
  }

  std::vector<DeviceFacts> list_devices() override {
    std::vector<DeviceFacts> list(1);
    list[0].id = id_;
    list[0].name = id_ + " on the host";
    list[0].caps.text(PAVO_CAP_ARCH, id_);
    return list;
  }
  std::unique_ptr<Device> open_device(const DeviceFacts& facts) override {
    return std::make_unique<HostDevice>(table_, facts.caps.list(), self_test_);
  }
  void query(const NodeQuery& query, pavo_verdict* verdict) override {
    table_.find(query, verdict);
  }
  PackForm pack_form(const pavo_values* /*caps*/, const pavo_tensor& tensor) override {
    return {extent_bytes(tensor), 4, true};
  }

 private:
  std::string id_;
  HostTable table_;
  void (*self_test_)();
};

// What PAVO_PLUGIN needs for such a plugin.
inline PluginInfo host_plugin(
    const std::string& id, const std::string& version, HostTable table, void (*self_test)()) {
  std::vector<Option> options = table.options();
  return {
      id,
      version,
      std::move(options),
      [id, table = std::move(table), self_test](const OptionValues& values) {
        return std::make_unique<HostPlugin>(id, table, self_test, values);
      }};
}

}  // namespace pavo::sdk
