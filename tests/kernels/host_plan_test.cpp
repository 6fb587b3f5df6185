// Plans, graphs, failures and packing of kernels/host, on the fake runtime.
#include <cstring>

#include "kernels/host/staging.h"
#include "tests/kernels/fake_plugin.h"

namespace pavo::cuda {
namespace {

namespace cudart = fakes::cudart;

constexpr int64_t kCount = 100;
constexpr int64_t kBytes = 4 * kCount;

// c = a + b, d = c + b.
class HostPlanTest : public FakePluginTest {
 protected:
  HostPlanTest() {
    for (int i = 0; i < 4; ++i) {
      builder_.activation({kCount});
    }
    builder_.node(pavo_op_binary, pavo_binary_params{}, {0, 1}, {2});
    builder_.node(pavo_op_binary, pavo_binary_params{}, {2, 1}, {3});
  }

  // Buffers of one step: tensors 512 bytes apart, then the workspace.
  pavo_buffer* make_step(float a, float b) {
    pavo_buffer* made = buffer(8192);
    if (made == nullptr) {
      return nullptr;
    }
    std::vector<float> values(static_cast<size_t>(kCount), a);
    values.resize(128, 0.0f);
    values.resize(128 + static_cast<size_t>(kCount), b);
    if (copy({upload(made, 0, values.data(), 512 + kBytes)}, {}, {}) != PAVO_OK) {
      return nullptr;
    }
    return made;
  }
  static std::vector<pavo_binding> bindings(pavo_buffer* step) {
    return {{step, 0}, {step, 512}, {step, 1024}, {step, 1536}};
  }
  int32_t run(pavo_plan* plan, pavo_buffer* step, pavo_timeline* line, uint64_t value) {
    return submit(plan, bindings(step), {step, 4096}, {}, {{line, value}});
  }
  // The first and last element of d.
  std::vector<float> result(pavo_buffer* step, pavo_timeline* line, uint64_t value) {
    std::vector<float> values(static_cast<size_t>(kCount), -1.0f);
    EXPECT_EQ(copy({download(values.data(), step, 1536, kBytes)}, {{line, value}}, {}), PAVO_OK)
        << message();
    return {values.front(), values.back()};
  }

  GraphBuilder builder_;
};

TEST_F(HostPlanTest, CountsLaunchesAndWorkspaceBeforeRunning) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  ASSERT_NE(plan(builder_), nullptr) << message();
  EXPECT_EQ(plan_info_.launches, 2);
  EXPECT_EQ(plan_info_.workspace_bytes, 1000);
  EXPECT_EQ(cudart::kernels_run(), 0);
}

TEST_F(HostPlanTest, GraphsOnAndOffAgree) {
  for (const int64_t graphs : {0, 1}) {
    close();
    cudart::reset({fakes::FakeDevice{}});
    ASSERT_EQ(open({{"graphs", graphs}}), PAVO_OK) << message();
    pavo_plan* made = plan(builder_);
    ASSERT_NE(made, nullptr) << message();
    pavo_timeline* line = timeline();
    // More sets of addresses than graphs are kept, each used several times.
    std::vector<pavo_buffer*> steps;
    for (int i = 0; i < 6; ++i) {
      steps.push_back(make_step(static_cast<float>(i), 10.0f));
      ASSERT_NE(steps.back(), nullptr) << message();
    }
    uint64_t value = 0;
    for (int round = 0; round < 3; ++round) {
      for (size_t i = 0; i < steps.size(); ++i) {
        ASSERT_EQ(run(made, steps[i], line, ++value), PAVO_OK) << message();
        const float expected = static_cast<float>(i) + 20.0f;
        EXPECT_EQ(result(steps[i], line, value), (std::vector<float>{expected, expected}));
      }
    }
    ASSERT_EQ(wait(line, value), PAVO_OK) << message();
    EXPECT_EQ(cudart::kernels_run(), 2 * static_cast<int64_t>(value));
    EXPECT_EQ(cudart::graph_launches(), graphs == 0 ? 0 : static_cast<int64_t>(value) - 1)
        << "all runs but the first are replays";
    EXPECT_LE(cudart::live().executables, 4);
  }
}

// Upload, run and download are all queued before anything is waited for.
TEST_F(HostPlanTest, EachStreamWaitsForTheOneBefore) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  pavo_plan* made = plan(builder_);
  pavo_buffer* step = buffer(8192);
  pavo_buffer* stage = buffer(4096, PAVO_MEMORY_HOST);
  pavo_timeline* line = timeline();
  auto* host = static_cast<float*>(api_->buffer_host(stage));
  for (uint64_t round = 0; round < 3; ++round) {
    const uint64_t value = 3 * round;
    std::fill_n(host, 512 / 4, static_cast<float>(round));
    std::fill_n(host + 512 / 4, kCount, 10.0f);
    pavo_copy_region in = upload(step, 0, nullptr, 512 + kBytes);
    in.src = stage;
    pavo_copy_region out = download(nullptr, step, 1536, kBytes);
    out.dst = stage;
    out.dst_offset = 2048;
    ASSERT_EQ(copy({in}, {}, {{line, value + 1}}), PAVO_OK) << message();
    ASSERT_EQ(
        submit(made, bindings(step), {step, 4096}, {{line, value + 1}}, {{line, value + 2}}),
        PAVO_OK)
        << message();
    ASSERT_EQ(copy({out}, {{line, value + 2}}, {{line, value + 3}}), PAVO_OK) << message();
    ASSERT_EQ(wait(line, value + 3), PAVO_OK) << message();
    EXPECT_EQ(host[2048 / 4], static_cast<float>(round) + 20.0f) << "round " << round;
    EXPECT_EQ(host[2048 / 4 + kCount - 1], static_cast<float>(round) + 20.0f);
  }
}

TEST_F(HostPlanTest, RunsWithoutGraphsWhereTheyDoNotWork) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  cudart::refuse_capture();
  pavo_plan* made = plan(builder_);
  pavo_buffer* step = make_step(1.0f, 2.0f);
  pavo_timeline* line = timeline();
  for (uint64_t value = 1; value <= 3; ++value) {
    ASSERT_EQ(run(made, step, line, value), PAVO_OK) << message();
    ASSERT_EQ(wait(line, value), PAVO_OK) << message();
  }
  EXPECT_EQ(result(step, line, 3), (std::vector<float>{5.0f, 5.0f}));
  EXPECT_EQ(cudart::graph_launches(), 0);
}

TEST_F(HostPlanTest, BadSubmitsNameTheTensor) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  pavo_plan* made = plan(builder_);
  pavo_buffer* step = make_step(1.0f, 2.0f);
  std::vector<pavo_binding> good = bindings(step);
  const pavo_binding workspace = {step, 4096};
  std::vector<pavo_binding> bad = good;
  bad[2] = {step, 8192 - kBytes + 4};
  EXPECT_EQ(submit(made, bad, workspace, {}, {}), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_NE(message().find("tensor 2 't2'"), std::string::npos) << message();
  bad[2] = {nullptr, 0};
  EXPECT_EQ(submit(made, bad, workspace, {}, {}), PAVO_ERROR_INVALID_ARGUMENT);
  bad[2] = {step, 1026};
  EXPECT_EQ(submit(made, bad, workspace, {}, {}), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(submit(made, good, {nullptr, 0}, {}, {}), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(submit(made, good, {step, 4097}, {}, {}), PAVO_ERROR_INVALID_ARGUMENT);
  good.pop_back();
  EXPECT_EQ(submit(made, good, workspace, {}, {}), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(cudart::kernels_run(), 0);
}

TEST_F(HostPlanTest, RefusedNodeIsNotPlanned) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  builder_.at(1).rank = 0;  // the fake kernel does not broadcast
  EXPECT_EQ(plan(builder_), nullptr);
  EXPECT_EQ(error_.code, PAVO_ERROR_UNSUPPORTED);
  EXPECT_NE(message().find("no broadcast"), std::string::npos) << message();
}

TEST_F(HostPlanTest, TimingsPerNode) {
  ASSERT_EQ(open({{"timings", 1}}), PAVO_OK) << message();
  pavo_plan* made = plan(builder_);
  pavo_buffer* step = make_step(1.0f, 2.0f);
  pavo_timeline* line = timeline();
  ASSERT_EQ(run(made, step, line, 1), PAVO_OK) << message();
  int64_t ns[2] = {};
  ASSERT_EQ(api_->plan_timings(made, ns, 2, &error_), PAVO_OK) << message();
  EXPECT_EQ(ns[0], 1000);  // one operation of the fake
  EXPECT_EQ(ns[1], 1000);
  EXPECT_EQ(api_->plan_timings(made, ns, 1, &error_), PAVO_ERROR_INVALID_ARGUMENT);
}

TEST_F(HostPlanTest, LostDeviceIsSaidByEveryCallAndClosesCleanly) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  pavo_plan* made = plan(builder_);
  pavo_buffer* step = make_step(1.0f, 2.0f);
  pavo_timeline* line = timeline();
  cudart::fail_kernel(cudaErrorIllegalAddress);
  ASSERT_EQ(run(made, step, line, 1), PAVO_OK) << message();
  EXPECT_EQ(wait(line, 1), PAVO_ERROR_DEVICE_LOST);
  EXPECT_EQ(error_.device_state, PAVO_DEVICE_STATE_LOST);
  EXPECT_EQ(error_.domain, PAVO_DOMAIN_CUDA_RUNTIME);
  EXPECT_EQ(error_.native_code, cudaErrorIllegalAddress);
  EXPECT_EQ(run(made, step, line, 2), PAVO_ERROR_DEVICE_LOST);
  EXPECT_NE(message().find("cudaErrorIllegalAddress"), std::string::npos) << message();
  EXPECT_EQ(buffer(64), nullptr);
  EXPECT_EQ(error_.code, PAVO_ERROR_DEVICE_LOST);
}

TEST_F(HostPlanTest, FailedLaunchRaisesTheTimelineAndIsToldOnce) {
  ASSERT_EQ(open({{"graphs", 0}}), PAVO_OK) << message();
  pavo_plan* made = plan(builder_);
  pavo_buffer* step = make_step(1.0f, 2.0f);
  pavo_timeline* line = timeline();
  cudart::fail_call(3, cudaErrorInvalidValue);  // set device, first launch, second launch
  ASSERT_EQ(run(made, step, line, 1), PAVO_OK) << message();
  EXPECT_EQ(wait(line, 1), PAVO_ERROR_NODE_FAILED);
  EXPECT_NE(message().find("node 1"), std::string::npos) << message();
  EXPECT_NE(message().find("kernel fake_add"), std::string::npos) << message();
  EXPECT_EQ(wait(line, 1), PAVO_OK) << message();
  ASSERT_EQ(run(made, step, line, 2), PAVO_OK) << message();
  EXPECT_EQ(wait(line, 2), PAVO_OK) << message();
}

TEST_F(HostPlanTest, SelfTestPassesAndFails) {
  ASSERT_EQ(open(), PAVO_OK) << message();
  EXPECT_EQ(api_->device_self_test(device_, &error_), PAVO_OK) << message();
  EXPECT_EQ(cudart::graph_launches(), 2);
  cudart::fail_kernel(cudaErrorLaunchFailure);
  EXPECT_EQ(api_->device_self_test(device_, &error_), PAVO_ERROR_DEVICE_LOST);
}

#define PAVO_SESSION(call)                            \
  if (const int32_t code = (call); code != PAVO_OK) { \
    return code;                                      \
  }

// Everything that a program does with a device, from opening to closing; the first error ends it.
class EveryFailureTest : public HostPlanTest {
 protected:
  int32_t session(const std::vector<std::pair<std::string, int64_t>>& options) {
    PAVO_SESSION(open(options));
    pavo_timeline* line = timeline();
    pavo_plan* made = plan(builder_);
    pavo_buffer* step = made == nullptr ? nullptr : make_step(1.0f, 2.0f);
    pavo_buffer* pinned = step == nullptr ? nullptr : buffer(512, PAVO_MEMORY_HOST);
    pavo_buffer* packed = pinned == nullptr ? nullptr : buffer(1024);
    if (packed == nullptr) {
      return error_.code;
    }
    GraphBuilder weights;
    const uint32_t weight = weights.weight(PAVO_TYPE_Q8_0, {4, 64});
    const std::vector<unsigned char> rows(4 * 2 * 34, 1);
    const pavo_binding target = {packed, 0};
    PAVO_SESSION(api_->pack(device_, &weights.at(weight), &target, rows.data(), 0, 4, &error_));
    PAVO_SESSION(copy_in_pieces());
    for (uint64_t value = 1; value <= 3; ++value) {
      PAVO_SESSION(run(made, step, line, value));
    }
    pavo_copy_region out = download(nullptr, step, 1536, kBytes);
    out.dst = pinned;
    PAVO_SESSION(copy({out}, {{line, 3}}, {{line, 4}}));
    for (uint64_t value = 1; value <= 4; ++value) {
      PAVO_SESSION(wait(line, value));
    }
    EXPECT_EQ(static_cast<float*>(api_->buffer_host(pinned))[0], 5.0f);
    return PAVO_OK;
  }

 private:
  // There and back, through more staging halves than there are.
  int32_t copy_in_pieces() {
    constexpr int64_t kSize = 2 * Staging::kHalfBytes + 4096;
    pavo_buffer* large = buffer(kSize);
    if (large == nullptr) {
      return error_.code;
    }
    const std::vector<unsigned char> source(kSize, 7);
    std::vector<unsigned char> back(kSize);
    PAVO_SESSION(copy({upload(large, 0, source.data(), kSize)}, {}, {}));
    PAVO_SESSION(copy({download(back.data(), large, 0, kSize)}, {}, {}));
    EXPECT_TRUE(back == source);
    return PAVO_OK;
  }
};

// How many allocations the closed device says that it was asked for; -1: it did not say.
int64_t logged_allocations() {
  const std::string before = "fail_alloc_at: ";
  for (const LogLine& line : fake_log()) {
    if (const size_t at = line.text.find(before); at != std::string::npos) {
      return std::stoll(line.text.substr(at + before.size()));
    }
  }
  return -1;
}

TEST_F(EveryFailureTest, EachAllocationInTurn) {
  ASSERT_EQ(session({{"fail_alloc_at", INT64_MAX}}), PAVO_OK) << message();
  close();
  const int64_t count = logged_allocations();
  ASSERT_EQ(count, 5) << "step, a pair of staging halves, pinned, packed, large";
  for (int64_t n = 1; n <= count + 1; ++n) {
    cudart::reset({fakes::FakeDevice{}});
    fake_log().clear();
    const int32_t code = session({{"fail_alloc_at", n}});
    EXPECT_EQ(code, n <= count ? PAVO_ERROR_OUT_OF_MEMORY : PAVO_OK) << message();
    if (code != PAVO_OK) {
      EXPECT_EQ(error_.device_state, PAVO_DEVICE_STATE_OOM);
      EXPECT_NE(message().find(" memory: expected "), std::string::npos) << message();
    }
    close();
    EXPECT_EQ(logged_allocations(), std::min(n, count)) << "the first failure ends the session";
    EXPECT_EQ(logged_errors(), std::vector<std::string>{}) << "after allocation " << n << " failed";
    ASSERT_EQ(cudart::live().total(), 0) << "after allocation " << n << " failed";
  }
}

class EveryCallTest : public EveryFailureTest, public testing::WithParamInterface<cudaError_t> {};

// A call that fails is either survived (graphs are optional) or ends the session with its status;
// nothing is left behind and nothing hangs.
TEST_P(EveryCallTest, EachRuntimeCallInTurn) {
  const cudaError_t failure = GetParam();
  ASSERT_EQ(session({}), PAVO_OK) << message();
  const int64_t calls = cudart::calls();
  for (int64_t n = 1; n <= calls; ++n) {
    close();
    ASSERT_EQ(cudart::live().total(), 0) << "after call " << n - 1 << " failed";
    cudart::reset({fakes::FakeDevice{}});
    cudart::fail_call(n, failure);
    const int32_t code = session({});
    if (failure == cudaErrorIllegalAddress) {
      EXPECT_NE(code, PAVO_OK) << "the context was gone after call " << n;
    } else {
      EXPECT_NE(code, PAVO_ERROR_DEVICE_LOST) << message();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Errors,
    EveryCallTest,
    testing::Values(cudaErrorMemoryAllocation, cudaErrorInvalidValue, cudaErrorIllegalAddress),
    [](const auto& test) { return "Cuda" + std::to_string(static_cast<int>(test.param)); });

}  // namespace
}  // namespace pavo::cuda
