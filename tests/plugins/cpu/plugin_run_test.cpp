// Memory, copies, timelines and submits of the CPU plugin: what is refused, and what is reported.
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/plugins/cpu/single_node.h"

namespace pavo::test {
namespace {

constexpr int64_t kForever = -1;

class CpuRun : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(api().timeline_create(device(), &timeline_, &error_), PAVO_OK);
  }

  void TearDown() override {
    for (pavo_buffer* buffer : buffers_) {
      api().buffer_destroy(buffer);
    }
    api().timeline_destroy(timeline_);
  }

  const pavo_plugin_api& api() const { return backend_.api(); }
  pavo_device* device() const { return backend_.device(); }

  pavo_buffer* buffer(int64_t size) {
    pavo_buffer* result = nullptr;
    require_ok(
        api().buffer_create(device(), size, PAVO_MEMORY_DEVICE, &result, &error_),
        error_,
        "buffer_create");
    buffers_.push_back(result);
    return result;
  }

  pavo_buffer* import(const void* memory, int64_t size) {
    pavo_buffer* result = nullptr;
    require_ok(
        api().buffer_import(device(), memory, size, &result, &error_), error_, "buffer_import");
    buffers_.push_back(result);
    return result;
  }

  int32_t copy(const pavo_copy_region& region) {
    return api().copy(device(), &region, 1, nullptr, 0, nullptr, 0, &error_);
  }

  bool says(const std::string& part) const {
    return std::string(error_.message, error_.message_size).find(part) != std::string::npos;
  }

  Backend backend_{{PAVO_CPU_PLUGIN, {{"threads", "2"}}, "cpu"}};
  pavo_timeline* timeline_ = nullptr;
  std::vector<pavo_buffer*> buffers_;
  pavo_error error_ = empty_error();
};

using CpuMemory = CpuRun;
using CpuTimeline = CpuRun;

TEST_F(CpuMemory, CountsWhatItGives) {
  pavo_memory_info info{};
  info.struct_size = sizeof info;
  buffer(1000);
  buffer(0);
  ASSERT_EQ(api().device_memory(device(), &info, &error_), PAVO_OK);
  EXPECT_EQ(info.used_bytes, 1000);
  EXPECT_GT(info.total_bytes, info.used_bytes);
  EXPECT_GT(info.free_bytes, 0);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(api().buffer_host(buffers_[0])) % 64, 0U);
}

TEST_F(CpuMemory, TooMuchIsAStatus) {
  pavo_buffer* none = nullptr;
  EXPECT_EQ(
      api().buffer_create(device(), int64_t{1} << 60, PAVO_MEMORY_DEVICE, &none, &error_),
      PAVO_ERROR_OUT_OF_MEMORY);
  EXPECT_EQ(error_.device_state, PAVO_DEVICE_STATE_OOM);
  EXPECT_EQ(
      api().buffer_create(device(), -1, PAVO_MEMORY_DEVICE, &none, &error_),
      PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(api().buffer_create(device(), 8, 7, &none, &error_), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
}

TEST_F(CpuMemory, CopiesRegionsWithPitches) {
  std::vector<int32_t> source(40);
  for (size_t i = 0; i < source.size(); ++i) {
    source[i] = static_cast<int32_t>(i);
  }
  pavo_copy_region region{};
  region.src_host = source.data();
  region.src_offset = 8;
  region.src_pitch = 40;
  region.dst = buffer(64);
  region.dst_offset = 4;
  region.dst_pitch = 16;
  region.row_bytes = 12;
  region.rows = 4;
  ASSERT_EQ(copy(region), PAVO_OK) << error_.message;
  std::vector<int32_t> target(16, -1);
  std::memcpy(target.data(), api().buffer_host(region.dst), 64);
  for (size_t row = 0; row < 4; ++row) {
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(target[1 + row * 4 + i], static_cast<int32_t>(2 + row * 10 + i));
    }
  }
}

TEST_F(CpuMemory, CopiesStayInTheirBuffers) {
  std::vector<char> host(256);
  pavo_copy_region good{};
  good.src_host = host.data();
  good.dst = buffer(64);
  good.row_bytes = 16;
  good.rows = 4;
  good.src_pitch = 16;
  good.dst_pitch = 16;
  ASSERT_EQ(copy(good), PAVO_OK);
  const auto refused = [&](auto spoil) {
    pavo_copy_region region = good;
    spoil(region);
    EXPECT_EQ(copy(region), PAVO_ERROR_INVALID_ARGUMENT);
  };
  refused([](pavo_copy_region& r) { r.dst_offset = 1; });
  refused([](pavo_copy_region& r) { r.dst_offset = -1; });
  refused([](pavo_copy_region& r) { r.dst_offset = INT64_MAX; });
  refused([](pavo_copy_region& r) { r.rows = 5; });
  refused([](pavo_copy_region& r) { r.rows = -1; });
  refused([](pavo_copy_region& r) { r.rows = INT64_MAX; });
  refused([](pavo_copy_region& r) { r.row_bytes = INT64_MAX; });
  refused([](pavo_copy_region& r) { r.dst_pitch = 17; });
  refused([](pavo_copy_region& r) { r.dst_pitch = 15; });
  refused([](pavo_copy_region& r) { r.dst_pitch = INT64_MAX; });
  refused([](pavo_copy_region& r) { r.src_host = nullptr; });
  refused([](pavo_copy_region& r) { r.dst = nullptr; });
  refused([&](pavo_copy_region& r) { r.dst = import(host.data(), 64); });
  EXPECT_TRUE(says("read only"));
  const Backend other({PAVO_CPU_PLUGIN, {}, "cpu"});
  pavo_buffer* foreign = nullptr;
  ASSERT_EQ(
      other.api().buffer_create(other.device(), 64, PAVO_MEMORY_DEVICE, &foreign, &error_),
      PAVO_OK);
  refused([&](pavo_copy_region& r) { r.dst = foreign; });
  other.api().buffer_destroy(foreign);
}

TEST_F(CpuMemory, NothingIsCopiedIfOneRegionIsWrong) {
  const char text[] = "new text";
  pavo_buffer* target = buffer(8);
  std::memcpy(api().buffer_host(target), "old text", 8);
  pavo_copy_region regions[2] = {};
  for (pavo_copy_region& region : regions) {
    region.src_host = text;
    region.dst = target;
    region.row_bytes = 8;
    region.rows = 1;
  }
  regions[1].dst_offset = 1;
  EXPECT_EQ(
      api().copy(device(), regions, 2, nullptr, 0, nullptr, 0, &error_),
      PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(std::memcmp(api().buffer_host(target), "old text", 8), 0);
}

TEST_F(CpuMemory, PacksRowsWithinTheWeight) {
  const MatmulNode node;
  const pavo_tensor& w = node.tensors[1];
  pavo_pack_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(api().pack_info(backend_.plugin(), nullptr, &w, &info, &error_), PAVO_OK);
  EXPECT_EQ(info.size_bytes, 3 * 32 * 4);
  EXPECT_EQ(info.in_place, 1);
  const std::vector<float> rows(96, 1.5F);
  const pavo_binding target = {buffer(info.size_bytes), 0};
  const auto pack = [&](const pavo_binding& to, int64_t begin, int64_t count) {
    return api().pack(device(), &w, &to, rows.data(), begin, count, &error_);
  };
  EXPECT_EQ(pack(target, 1, 2), PAVO_OK);
  EXPECT_EQ(pack(target, 3, 0), PAVO_OK);
  EXPECT_EQ(pack(target, 2, 2), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(pack(target, -1, 1), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(pack(target, INT64_MAX, 1), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(pack({target.buffer, 4}, 0, 1), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(pack({nullptr, 0}, 0, 1), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(pack({import(rows.data(), 384), 0}, 0, 1), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(
      api().pack_info(backend_.plugin(), nullptr, &node.tensors[0], &info, &error_),
      PAVO_ERROR_INVALID_ARGUMENT);
}

TEST_F(CpuTimeline, RisesAndWakesWaiters) {
  int32_t code = -1;
  std::thread waiter([&] {
    pavo_error error = empty_error();
    code = api().timeline_wait(timeline_, 5, kForever, &error);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const pavo_fence signal = {timeline_, 5};
  ASSERT_EQ(api().copy(device(), nullptr, 0, nullptr, 0, &signal, 1, &error_), PAVO_OK);
  waiter.join();
  EXPECT_EQ(code, PAVO_OK);
}

TEST_F(CpuTimeline, TimesOut) {
  EXPECT_EQ(api().timeline_wait(timeline_, 1, 1000, &error_), PAVO_ERROR_TIMEOUT);
  EXPECT_TRUE(says("is at 0"));
  EXPECT_EQ(api().timeline_wait(timeline_, 0, 0, &error_), PAVO_OK);
}

TEST_F(CpuTimeline, RefusesFencesThatCannotBe) {
  const auto copy_with = [&](const pavo_fence* wait, const pavo_fence* signal) {
    return api().copy(
        device(),
        nullptr,
        0,
        wait,
        wait != nullptr ? 1 : 0,
        signal,
        signal != nullptr ? 1 : 0,
        &error_);
  };
  const pavo_fence two = {timeline_, 2};
  EXPECT_EQ(copy_with(&two, nullptr), PAVO_ERROR_INVALID_ARGUMENT) << "would wait for ever";
  EXPECT_EQ(copy_with(nullptr, &two), PAVO_OK);
  EXPECT_EQ(copy_with(&two, nullptr), PAVO_OK);
  EXPECT_EQ(copy_with(nullptr, &two), PAVO_ERROR_INVALID_ARGUMENT) << "does not rise";
  const Backend other({PAVO_CPU_PLUGIN, {}, "cpu"});
  pavo_timeline* foreign = nullptr;
  ASSERT_EQ(other.api().timeline_create(other.device(), &foreign, &error_), PAVO_OK);
  const pavo_fence elsewhere = {foreign, 1};
  EXPECT_EQ(copy_with(nullptr, &elsewhere), PAVO_ERROR_INVALID_ARGUMENT);
  other.api().timeline_destroy(foreign);
}

class CpuSubmit : public CpuRun {
 protected:
  void SetUp() override {
    CpuRun::SetUp();
    pavo_plan_info info{};
    info.struct_size = sizeof info;
    require_ok(
        api().plan_create(device(), &node_.graph, &plan_, &info, &error_), error_, "plan_create");
    EXPECT_EQ(info.launches, 1);
    for (size_t i = 0; i < 3; ++i) {
      const int64_t size = node_.tensors[i].shape[0] * node_.tensors[i].shape[1] * 4;
      bindings_[i] = {buffer(size), 0};
      auto* values = static_cast<float*>(api().buffer_host(bindings_[i].buffer));
      std::fill_n(values, size / 4, 0.5F);
    }
    submit_.struct_size = sizeof submit_;
    submit_.binding_count = 3;
    submit_.bindings = bindings_;
    workspace_bytes_ = info.workspace_bytes;
    submit_.workspace = {buffer(workspace_bytes_), 0};
  }

  void TearDown() override {
    api().plan_destroy(plan_);
    CpuRun::TearDown();
  }

  int32_t submit() { return api().submit(plan_, &submit_, &error_); }

  MatmulNode node_;
  pavo_plan* plan_ = nullptr;
  pavo_binding bindings_[3] = {};
  pavo_submit submit_{};
  int64_t workspace_bytes_ = 0;
};

TEST_F(CpuSubmit, RunsAndTimes) {
  int64_t ns[1] = {-1};
  EXPECT_EQ(api().plan_timings(plan_, ns, 1, &error_), PAVO_ERROR_INVALID_ARGUMENT);
  ASSERT_EQ(submit(), PAVO_OK) << error_.message;
  const auto* y = static_cast<const float*>(api().buffer_host(bindings_[2].buffer));
  for (int i = 0; i < 6; ++i) {
    EXPECT_EQ(y[i], 8.0F);
  }
  ASSERT_EQ(api().plan_timings(plan_, ns, 1, &error_), PAVO_OK);
  EXPECT_GT(ns[0], 0);
  EXPECT_EQ(api().plan_timings(plan_, ns, 2, &error_), PAVO_ERROR_INVALID_ARGUMENT);
}

TEST_F(CpuSubmit, NamesTheOperandThatIsBoundWrong) {
  const auto refused = [&](size_t operand, pavo_binding binding) {
    const pavo_binding good = bindings_[operand];
    bindings_[operand] = binding;
    EXPECT_EQ(submit(), PAVO_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(says("node 77 (blk.0.test), operand " + std::to_string(operand))) << error_.message;
    bindings_[operand] = good;
  };
  refused(0, {nullptr, 0});
  refused(1, {bindings_[1].buffer, 1});
  refused(1, {bindings_[1].buffer, -1});
  refused(2, {bindings_[1].buffer, INT64_MAX});
  refused(0, {buffer(512), 2});
  const std::vector<float> memory(64);
  refused(2, {import(memory.data(), 256), 0});
  submit_.binding_count = 2;
  EXPECT_EQ(submit(), PAVO_ERROR_INVALID_ARGUMENT);
  submit_.binding_count = 3;
  if (workspace_bytes_ > 0) {
    submit_.workspace = {nullptr, 0};
    EXPECT_EQ(submit(), PAVO_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(says("workspace"));
  }
}

TEST_F(CpuSubmit, ImportedWeightsAreReadInPlace) {
  std::vector<char> file(1 + 3 * 32 * 4);
  for (int i = 0; i < 96; ++i) {
    const float value = 2.0F;
    std::memcpy(file.data() + 1 + 4 * i, &value, 4);
  }
  bindings_[1] = {import(file.data(), static_cast<int64_t>(file.size())), 1};
  ASSERT_EQ(submit(), PAVO_OK) << error_.message;
  EXPECT_EQ(*static_cast<const float*>(api().buffer_host(bindings_[2].buffer)), 32.0F);
}

// kv_store into a slot that the pool does not have.
TEST_F(CpuRun, FailedWorkIsReportedOnceByTheWait) {
  pavo_tensor tensors[3] = {};
  for (pavo_tensor& tensor : tensors) {
    tensor.struct_size = sizeof tensor;
    tensor.type = PAVO_TYPE_F32;
  }
  tensors[0].rank = 3;
  tensors[0].shape[0] = tensors[0].shape[1] = 1;
  tensors[0].shape[2] = 8;
  tensors[0].stride[2] = 4;
  tensors[1].role = PAVO_ROLE_KV_POOL;
  tensors[1].rank = 4;
  tensors[1].shape[0] = tensors[1].shape[1] = 1;
  tensors[1].shape[2] = PAVO_KV_PAGE_ROWS;
  tensors[1].shape[3] = 8;
  tensors[2].role = PAVO_ROLE_STEP;
  tensors[2].type = PAVO_TYPE_I32;
  tensors[2].rank = 1;
  tensors[2].shape[0] = 1;
  MatmulNode node;
  const pavo_tensor* const list[] = {&tensors[0], &tensors[1], &tensors[2]};
  const uint32_t inputs[] = {0, 1, 2};
  const uint32_t outputs[] = {1};
  const pavo_kv_store_params params = {sizeof params, 0};
  node.node.op = pavo_op_kv_store;
  node.node.inputs = inputs;
  node.node.input_count = 3;
  node.node.outputs = outputs;
  node.node.params = &params;
  node.graph.tensors = list;
  pavo_plan* plan = nullptr;
  pavo_plan_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(api().plan_create(device(), &node.graph, &plan, &info, &error_), PAVO_OK)
      << error_.message;
  const pavo_binding bindings[] = {{buffer(32), 0}, {buffer(64 * 8 * 4), 0}, {buffer(4), 0}};
  *static_cast<int32_t*>(api().buffer_host(bindings[2].buffer)) = 64;
  pavo_fence signal = {timeline_, 1};
  pavo_submit submit{};
  submit.struct_size = sizeof submit;
  submit.binding_count = 3;
  submit.bindings = bindings;
  EXPECT_EQ(api().submit(plan, &submit, &error_), PAVO_ERROR_NODE_FAILED) << "nobody else to tell";
  submit.signals = &signal;
  submit.signal_count = 1;
  EXPECT_EQ(api().submit(plan, &submit, &error_), PAVO_OK);
  EXPECT_EQ(api().timeline_wait(timeline_, 0, 0, &error_), PAVO_OK);
  EXPECT_EQ(api().timeline_wait(timeline_, 1, kForever, &error_), PAVO_ERROR_NODE_FAILED);
  EXPECT_EQ(error_.device_state, PAVO_DEVICE_STATE_NODE_FAILED);
  EXPECT_TRUE(says("slot 64"));
  EXPECT_EQ(api().timeline_wait(timeline_, 1, kForever, &error_), PAVO_OK);
  signal.value = 2;
  *static_cast<int32_t*>(api().buffer_host(bindings[2].buffer)) = 63;
  EXPECT_EQ(api().submit(plan, &submit, &error_), PAVO_OK);
  EXPECT_EQ(api().timeline_wait(timeline_, 2, kForever, &error_), PAVO_OK) << "device is usable";
  api().plan_destroy(plan);
}

// The functions marked [any], all at once.
TEST_F(CpuRun, AnyThreadMayAsk) {
  std::vector<std::thread> threads(4);
  for (std::thread& thread : threads) {
    thread = std::thread([&] {
      const MatmulNode node;
      const std::vector<float> rows(96, 1.0F);
      for (int k = 0; k < 50; ++k) {
        pavo_error error = empty_error();
        pavo_verdict verdict{};
        EXPECT_EQ(node.query(backend_, &verdict, &error), PAVO_OK);
        pavo_buffer* memory = nullptr;
        EXPECT_EQ(api().buffer_create(device(), 384, PAVO_MEMORY_DEVICE, &memory, &error), PAVO_OK);
        const pavo_binding target = {memory, 0};
        EXPECT_EQ(
            api().pack(device(), &node.tensors[1], &target, rows.data(), 0, 3, &error), PAVO_OK);
        pavo_memory_info info{};
        info.struct_size = sizeof info;
        EXPECT_EQ(api().device_memory(device(), &info, &error), PAVO_OK);
        api().buffer_destroy(memory);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
}

}  // namespace
}  // namespace pavo::test
