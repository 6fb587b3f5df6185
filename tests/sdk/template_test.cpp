// The template plugin loads like any other, refuses every op by name, and moves memory.
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "pavo/plugin_helpers.h"

#include "core/plugin_loader.h"
#include "core/plugin_table.h"
#include "tests/ops/family.h"
#include "tests/ops/op_case.h"
#include "tests/random.h"

namespace pavo {
namespace {

class TemplatePlugin : public testing::Test {
 protected:
  void SetUp() override {
    const Result<PluginFileFacts> facts = read_plugin_file(PAVO_NULL_PLUGIN);
    ASSERT_TRUE(facts.ok()) << facts.status().message();
    const auto loaded = load_plugin(PAVO_NULL_PLUGIN, *facts);
    ASSERT_TRUE(loaded.ok()) << loaded.status().message();
    api_ = (*loaded)->api;
    ASSERT_EQ(api_->plugin_create(nullptr, &plugin_, &error_), PAVO_OK);
    const pavo_string id = sdk::string("null");
    ASSERT_EQ(api_->device_open(plugin_, &id, &device_, &error_), PAVO_OK);
  }

  void TearDown() override {
    if (api_ != nullptr) {
      api_->device_close(device_);
      api_->plugin_destroy(plugin_);
    }
  }

  std::string message() const { return std::string(error_.message, error_.message_size); }

  const pavo_plugin_api* api_ = nullptr;
  pavo_plugin* plugin_ = nullptr;
  pavo_device* device_ = nullptr;
  pavo_error error_ = make_error();
};

TEST(Template, RefusesEveryOp) {
  const test::Backend backend({PAVO_NULL_PLUGIN, {}, "null"});
  test::Random random(1);
  for (const test::OpName& op : test::all_ops()) {
    const test::Family family = test::families_of(op.op).front();
    const test::OpRun run = test::run_case(backend, family.make(random, test::base_sizes(family)));
    EXPECT_TRUE(run.refused()) << op.name;
    EXPECT_EQ(run.verdict.reason, PAVO_REASON_OP) << op.name;
    EXPECT_EQ(run.verdict.actual, op.op);
    EXPECT_EQ(std::string(run.verdict.text), std::string("there is no kernel for op ") + op.name);
    EXPECT_EQ(run.code, PAVO_ERROR_UNSUPPORTED) << op.name;
  }
}

TEST_F(TemplatePlugin, SaysThatItCannotComputeYet) {
  EXPECT_EQ(api_->device_self_test(device_, &error_), PAVO_ERROR_UNSUPPORTED);
  EXPECT_NE(message(), "");
}

TEST_F(TemplatePlugin, CopiesThroughADeviceBuffer) {
  pavo_buffer* buffer = nullptr;
  ASSERT_EQ(api_->buffer_create(device_, 64, PAVO_MEMORY_DEVICE, &buffer, &error_), PAVO_OK);
  pavo_timeline* timeline = nullptr;
  ASSERT_EQ(api_->timeline_create(device_, &timeline, &error_), PAVO_OK);
  const std::string text = "abcdefgh";
  std::string back(8, '?');
  pavo_copy_region up{};
  up.src_host = text.data();
  up.dst = buffer;
  up.dst_offset = 10;
  up.row_bytes = 2;
  up.rows = 4;
  up.src_pitch = 2;
  up.dst_pitch = 5;
  pavo_copy_region down = up;
  down.src_host = nullptr;
  down.src = buffer;
  down.dst = nullptr;
  down.dst_host = back.data();
  std::swap(down.src_offset, down.dst_offset);
  std::swap(down.src_pitch, down.dst_pitch);
  const pavo_fence first = {timeline, 1};
  const pavo_fence second = {timeline, 2};
  ASSERT_EQ(api_->copy(device_, &up, 1, nullptr, 0, &first, 1, &error_), PAVO_OK) << message();
  ASSERT_EQ(api_->copy(device_, &down, 1, &first, 1, &second, 1, &error_), PAVO_OK) << message();
  EXPECT_EQ(api_->timeline_wait(timeline, 2, -1, &error_), PAVO_OK);
  EXPECT_EQ(back, text);
  api_->timeline_destroy(timeline);
  api_->buffer_destroy(buffer);
}

}  // namespace
}  // namespace pavo
