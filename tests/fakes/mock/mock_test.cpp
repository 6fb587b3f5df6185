// The mock device is what it claims to be; tests that stand on it prove nothing otherwise.
#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pavo/plugin_helpers.h"

#include "tests/fakes/mock/pages.h"
#include "tests/ops/backend.h"
#include "tests/ops/op_case.h"

namespace pavo::test {
namespace {

Backend mock(std::map<std::string, std::string> options = {}) {
  return Backend(BackendConfig{PAVO_MOCK_PLUGIN, std::move(options), "mock"});
}

// q [1,2,16] over `rows` rows of K/V of a type.
OpCase attention_case(int32_t type, int64_t rows) {
  OpCase result;
  result.set_params(pavo_op_attention, pavo_attention_params{0, 1, 0, 1, 0, 16});
  const auto pool = [&] {
    pavo_kv_layout layout{};
    pavo_kv_layout_init(type, 16, &layout);
    return kv_pool(
        type, 2, 1, 16, std::vector<std::byte>(static_cast<size_t>(2 * layout.head_bytes)));
  };
  result.add_input(activation({1, 2, 16}, std::vector<float>(32, 1)));
  result.add_input(pool());
  result.add_input(pool());
  result.add_input(step({1}, {0}));
  result.add_input(step({1}, {0}));
  result.add_input(step({2}, {0, 1}));
  result.add_input(step({1}, {1}));
  result.add_input(step({1, 1}, {0}));
  result.add_output(output({1, 2, 16}));
  result.bucket.sequences = 1;
  result.bucket.kv_rows = rows;
  return result;
}

TEST(Mock, RefusesByOpTypeShapeAndRows) {
  const auto refused = [](const std::string& rule, const OpCase& test_case) {
    const OpRun run = run_case(mock({{"refuse", rule}}), test_case);
    EXPECT_EQ(run.refused(), run.code != PAVO_OK) << run.message;
    return run.refused() ? run.verdict.reason : PAVO_REASON_NONE;
  };
  const OpCase f16 = attention_case(PAVO_TYPE_F16, 100);
  EXPECT_EQ(refused("", f16), PAVO_REASON_NONE);
  EXPECT_EQ(refused("matmul", f16), PAVO_REASON_NONE);
  EXPECT_EQ(refused("*", f16), PAVO_REASON_POLICY);
  EXPECT_EQ(refused("matmul,attention", f16), PAVO_REASON_POLICY);
  EXPECT_EQ(refused("attention:type1=f16", f16), PAVO_REASON_TYPE);
  EXPECT_EQ(refused("attention:type1=f16", attention_case(PAVO_TYPE_F32, 100)), PAVO_REASON_NONE);
  EXPECT_EQ(refused("attention:dim0.2>15", f16), PAVO_REASON_SHAPE_RANGE);
  EXPECT_EQ(refused("attention:dim0.2>16", f16), PAVO_REASON_NONE);
  EXPECT_EQ(refused("attention:dim0.2%32", f16), PAVO_REASON_SHAPE_MULTIPLE);
  EXPECT_EQ(refused("attention:type1=f16:dim0.2<16", f16), PAVO_REASON_NONE);
  EXPECT_EQ(refused("attention:kv_rows>99", f16), PAVO_REASON_SHAPE_RANGE);
}

TEST(Mock, TellsTheRowsForWhichAVerdictHolds) {
  const OpRun run =
      run_case(mock({{"refuse", "attention:kv_rows>128"}}), attention_case(PAVO_TYPE_F16, 100));
  EXPECT_FALSE(run.refused());
  EXPECT_EQ(run.verdict.kv_rows_max, 128);
}

TEST(Mock, NamesOptionsThatItDoesNotUnderstand) {
  for (const auto& [key, value] :
       {std::pair("refuse", "attention:type1=f99"),
        std::pair("refuse", "no_such_op"),
        std::pair("fault", "submit@0=crash"),
        std::pair("fault", "submit=laugh"),
        std::pair("only", "no_such_op")}) {
    try {
      mock({{key, value}});
      ADD_FAILURE() << key << "=" << value << " was accepted";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find(value), std::string::npos) << error.what();
    }
  }
}

// A copy from host memory reads it when it runs, not when it is queued.
TEST(Mock, IsAsynchronous) {
  const Backend backend = mock({{"latency_us", "50000"}});
  const pavo_plugin_api& api = backend.api();
  pavo_error error = empty_error();
  pavo_buffer* buffer = nullptr;
  pavo_timeline* timeline = nullptr;
  require_ok(
      api.buffer_create(backend.device(), 4, PAVO_MEMORY_DEVICE, &buffer, &error), error, "create");
  require_ok(api.timeline_create(backend.device(), &timeline, &error), error, "timeline");
  EXPECT_EQ(api.buffer_host(buffer), nullptr);
  std::string source = "old!";
  std::string back = "????";
  pavo_copy_region up{};
  up.src_host = source.data();
  up.dst = buffer;
  up.rows = 1;
  up.row_bytes = 4;
  pavo_copy_region down{};
  down.src = buffer;
  down.dst_host = back.data();
  down.rows = 1;
  down.row_bytes = 4;
  const pavo_fence fences[] = {{timeline, 1}, {timeline, 2}};
  require_ok(api.copy(backend.device(), &up, 1, nullptr, 0, &fences[0], 1, &error), error, "copy");
  require_ok(
      api.copy(backend.device(), &down, 1, &fences[0], 1, &fences[1], 1, &error), error, "copy");
  source = "new!";
  EXPECT_EQ(api.timeline_wait(timeline, 1, 0, &error), PAVO_ERROR_TIMEOUT);
  EXPECT_EQ(back, "????");
  require_ok(api.timeline_wait(timeline, 2, -1, &error), error, "wait");
  EXPECT_EQ(back, "new!");
  const pavo_fence never = {timeline, 9};
  EXPECT_EQ(
      api.copy(backend.device(), &down, 1, &never, 1, nullptr, 0, &error),
      PAVO_ERROR_INVALID_ARGUMENT);
  const pavo_fence past = {timeline, 2};
  EXPECT_EQ(
      api.copy(backend.device(), &down, 1, nullptr, 0, &past, 1, &error),
      PAVO_ERROR_INVALID_ARGUMENT);
  api.timeline_destroy(timeline);
  api.buffer_destroy(buffer);
}

TEST(MockDeathTest, ItsMemoryIsClosedToTheHost) {
  mock::Pages& pages = mock::Pages::instance();
  auto* memory = static_cast<volatile char*>(pages.allocate(100, 4, false));
  EXPECT_DEATH(memory[0] = 1, "");
  EXPECT_DEATH(static_cast<void>(memory[99] == 0), "");
  pages.open(const_cast<char*>(memory));
  memory[0] = 1;
  memory[99] = 2;
  EXPECT_DEATH(memory[100] = 3, "") << "behind the block";
  pages.close(const_cast<char*>(memory));
  EXPECT_DEATH(memory[0] = 1, "");
  pages.release(const_cast<char*>(memory));
}

}  // namespace
}  // namespace pavo::test
