// A CUDA plugin whose device is the fake runtime and whose one kernel is a host function:
// everything of kernels/host, driven through the ABI.
#pragma once

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/host/api.h"
#include "tests/fakes/cudart.h"
#include "tests/kernels/graph_builder.h"

namespace pavo::cuda {

// out = a + b over `count` floats.
struct FakeAdd {
  static constexpr const char* kName = "fake_add";

  struct Data {
    const float* a;
    const float* b;
    float* out;
    int64_t count;
  };
  static void run(fakes::KernelParams params) {
    Data data;
    std::memcpy(&data, params.bytes, sizeof data);
    for (int64_t i = 0; i < data.count; ++i) {
      data.out[i] = data.a[i] + data.b[i];
    }
  }
  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    return query.input(1)->rank == query.input(0)->rank ||
           sdk::refuse(verdict, PAVO_REASON_SHAPE_MISMATCH, 1, -1, 0, 0, "no broadcast");
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 1000; }
  static Cost cost(const NodeQuery&) { return {}; }
  static cudaError_t launch(const KernelArgs& args) {
    const Data data = {
        args.input(0).as<float>(),
        args.input(1).as<float>(),
        args.output(0).as<float>(),
        sdk::element_count(*args.output(0).tensor)};
    fakes::KernelParams params = {};
    std::memcpy(params.bytes, &data, sizeof data);
    return args.launcher.launch(kName, &run, dim3(1), dim3(32), 0, params);
  }
};

inline const PluginInfo& fake_info() {
  static constexpr Kernel kKernels[] = {
      {FakeAdd::kName,
       pavo_op_binary,
       PAVO_ACCEPT,
       &FakeAdd::supports,
       &FakeAdd::workspace_bytes,
       &FakeAdd::cost,
       &FakeAdd::launch}};
  static const PluginInfo kInfo = [] {
    PluginInfo info = {};
    info.id = "cuda-fake";
    info.version = "1";
    info.has_sass = true;
    info.has_ptx = true;
    info.toolkit_version = 12040;
    info.facts = {61, 48 << 10, 96 << 10, 65536, 2048, 32, {}};
    info.facts.typical = {61, 30, int64_t{24} << 30, 48 << 10, 3 << 20, 346e9, 11.8e12};
    info.families = {{kKernels, 1}};
    return info;
  }();
  return kInfo;
}

struct LogLine {
  int32_t level;
  std::string text;
};

// What the plugin has logged since somebody cleared it.
inline std::vector<LogLine>& fake_log() {
  static std::vector<LogLine> lines;
  return lines;
}

inline const pavo_host_api* fake_host() {
  static const pavo_host_api kHost = [] {
    pavo_host_api host = {};
    host.struct_size = sizeof host;
    host.log = [](void*, int32_t level, const char* text, uint64_t size) {
      fake_log().push_back({level, std::string(text, size)});
    };
    return host;
  }();
  return &kHost;
}

inline std::vector<std::string> logged_errors() {
  std::vector<std::string> errors;
  for (const LogLine& line : fake_log()) {
    if (line.level == PAVO_LOG_ERROR) {
      errors.push_back(line.text);
    }
  }
  return errors;
}

// One instance with one opened device. Everything that a test made is destroyed at its end, and
// then nothing of the runtime may be left, nor of the plugin's own memory.
class FakePluginTest : public testing::Test {
 protected:
  void SetUp() override {
    fakes::cudart::reset({fakes::FakeDevice{}});
    fake_log().clear();
  }

  void TearDown() override {
    close();
    EXPECT_EQ(logged_errors(), expected_errors_);
    EXPECT_EQ(fakes::cudart::live().total(), 0) << "something of the runtime was not given back";
  }

  // Options as {key, value}.
  int32_t open(const std::vector<std::pair<std::string, int64_t>>& options = {}) {
    if (api_ == nullptr &&
        query_plugin(fake_info(), 0, 0, 1, fake_host(), &api_, &error_) != PAVO_OK) {
      return error_.code;
    }
    std::vector<pavo_value> values;
    std::vector<const pavo_value*> pointers;
    for (const auto& [key, value] : options) {
      pavo_value item = {};
      item.struct_size = sizeof item;
      item.type = PAVO_VALUE_INT;
      item.key = sdk::string(key);
      item.int_value = value;
      values.push_back(item);
    }
    for (const pavo_value& value : values) {
      pointers.push_back(&value);
    }
    const pavo_values list = {sizeof list, static_cast<uint32_t>(pointers.size()), pointers.data()};
    if (api_->plugin_create(&list, &plugin_, &error_) != PAVO_OK) {
      return error_.code;
    }
    pavo_device_info info = {};
    info.struct_size = sizeof info;
    if (api_->device_info(plugin_, 0, &info, &error_) != PAVO_OK) {
      return error_.code;
    }
    const std::string id(sdk::view(info.id));
    const pavo_string wanted = sdk::string(id);
    return api_->device_open(plugin_, &wanted, &device_, &error_);
  }

  pavo_buffer* buffer(int64_t bytes, int32_t kind = PAVO_MEMORY_DEVICE) {
    pavo_buffer* made = nullptr;
    if (api_->buffer_create(device_, bytes, kind, &made, &error_) == PAVO_OK) {
      buffers_.push_back(made);
    }
    return made;
  }
  pavo_timeline* timeline() {
    pavo_timeline* made = nullptr;
    if (api_->timeline_create(device_, &made, &error_) == PAVO_OK) {
      timelines_.push_back(made);
    }
    return made;
  }
  pavo_plan* plan(GraphBuilder& builder) {
    pavo_plan* made = nullptr;
    plan_info_ = {};
    plan_info_.struct_size = sizeof plan_info_;
    if (api_->plan_create(device_, builder.graph(), &made, &plan_info_, &error_) == PAVO_OK) {
      plans_.push_back(made);
    }
    return made;
  }

  int32_t copy(
      const std::vector<pavo_copy_region>& regions,
      const std::vector<pavo_fence>& waits,
      const std::vector<pavo_fence>& signals) {
    return api_->copy(
        device_,
        regions.data(),
        static_cast<uint32_t>(regions.size()),
        waits.data(),
        static_cast<uint32_t>(waits.size()),
        signals.data(),
        static_cast<uint32_t>(signals.size()),
        &error_);
  }
  int32_t submit(
      pavo_plan* plan,
      const std::vector<pavo_binding>& bindings,
      pavo_binding workspace,
      const std::vector<pavo_fence>& waits,
      const std::vector<pavo_fence>& signals) {
    const pavo_submit submit = {
        sizeof submit,
        static_cast<uint32_t>(bindings.size()),
        bindings.data(),
        workspace,
        waits.data(),
        signals.data(),
        static_cast<uint32_t>(waits.size()),
        static_cast<uint32_t>(signals.size())};
    return api_->submit(plan, &submit, &error_);
  }
  int32_t wait(pavo_timeline* timeline, uint64_t value, int64_t timeout_ns = 10'000'000'000) {
    return api_->timeline_wait(timeline, value, timeout_ns, &error_);
  }
  std::string message() const { return text_of(error_); }

  void close() {
    for (pavo_plan* plan : plans_) {
      api_->plan_destroy(plan);
    }
    for (pavo_timeline* timeline : timelines_) {
      api_->timeline_destroy(timeline);
    }
    for (pavo_buffer* buffer : buffers_) {
      api_->buffer_destroy(buffer);
    }
    plans_.clear();
    timelines_.clear();
    buffers_.clear();
    if (device_ != nullptr) {
      api_->device_close(std::exchange(device_, nullptr));
    }
    if (plugin_ != nullptr) {
      api_->plugin_destroy(std::exchange(plugin_, nullptr));
    }
  }

  const pavo_plugin_api* api_ = nullptr;
  pavo_plugin* plugin_ = nullptr;
  pavo_device* device_ = nullptr;
  pavo_plan_info plan_info_ = {};
  pavo_error error_ = make_error();
  std::vector<std::string> expected_errors_;  // in the log at the end of the test

 private:
  std::vector<pavo_buffer*> buffers_;
  std::vector<pavo_timeline*> timelines_;
  std::vector<pavo_plan*> plans_;
};

// Regions between a buffer and host memory, dense.
inline pavo_copy_region upload(pavo_buffer* dst, int64_t offset, const void* src, int64_t bytes) {
  pavo_copy_region region = {};
  region.src_host = src;
  region.dst = dst;
  region.dst_offset = offset;
  region.row_bytes = bytes;
  region.rows = 1;
  return region;
}
inline pavo_copy_region download(void* dst, pavo_buffer* src, int64_t offset, int64_t bytes) {
  pavo_copy_region region = {};
  region.dst_host = dst;
  region.src = src;
  region.src_offset = offset;
  region.row_bytes = bytes;
  region.rows = 1;
  return region;
}

}  // namespace pavo::cuda
