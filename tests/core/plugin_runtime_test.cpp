// The part of the fault matrix that happens while a plugin is at work, on the mock device: errors,
// exceptions, lost devices and missing memory are statuses, and what can go on does.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/plugin_options.h"
#include "core/program.h"
#include "tests/core/program_fixture.h"
#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

using testing::HasSubstr;

const LoadedPlugin* mock() {
  static const LoadedPlugin* const plugin = [] {
    const auto path = test::fake("mock");
    const auto facts = read_plugin_file(path);
    return *load_plugin(path, *facts);
  }();
  return plugin;
}

Result<std::unique_ptr<Device>> open_mock(const test::Options& options) {
  PAVO_ASSIGN_OR_RETURN(auto values, convert_options(mock()->api, options));
  PAVO_ASSIGN_OR_RETURN(auto plugin, PluginInstance::create(mock()->api, std::move(values)));
  return Device::open(std::move(plugin), "mock-0");
}

// A chain program on the mock alone.
class Chain {
 public:
  static Result<std::unique_ptr<Chain>> create(const test::Options& options) {
    PAVO_ASSIGN_OR_RETURN(auto device, open_mock(options));
    auto chain = std::make_unique<Chain>(std::move(device));
    PAVO_ASSIGN_OR_RETURN(
        chain->program_,
        Program::create(
            std::move(chain->chain_.graph), {chain->chain_.out}, {}, chain->world_.context));
    return chain;
  }
  explicit Chain(std::unique_ptr<Device> device) : world_(std::move(device)) {
    world_.context.devices = {world_.first.get()};
  }

  // Sum of the output of a step.
  Result<double> step(int32_t id) {
    const std::vector<int32_t> ids = {id, 0, 1};
    PAVO_RETURN_IF_ERROR(program_->set_step(chain_.ids, ids));
    PAVO_RETURN_IF_ERROR(program_->run().status());
    std::vector<float> out(3 * test::kWidth);
    PAVO_RETURN_IF_ERROR(program_->read_output(chain_.out, 0, out));
    double sum = 0;
    for (const float value : out) {
      sum += static_cast<double>(value);
    }
    return sum;
  }

 private:
  test::World world_;
  test::Chain chain_;
  std::unique_ptr<Program> program_;
};

double true_sum(int32_t id) {
  const auto chain = Chain::create({});
  EXPECT_TRUE(chain.ok()) << chain.status().message();
  const Result<double> sum = (*chain)->step(id);
  EXPECT_TRUE(sum.ok()) << sum.status().message();
  return *sum;
}

struct Row {
  const char* fault;
  Code code;
  const char* message;
};

TEST(PluginRuntime, SurvivesAnErrorAtTheNthSubmit) {
  const Row rows[] = {
      {"submit@2=error", Code::kNodeFailed, "mock: submit: the mock was told to fail"},
      {"submit@2=fail", Code::kNodeFailed, "mock: the mock was told that queued work fails"},
      {"submit@2=oom", Code::kOutOfMemory, "mock: submit: the mock was told to have no memory"},
      {"submit@2=throw", Code::kInternal, "mock: submit threw an exception (the mock was told"},
  };
  for (const Row& row : rows) {
    SCOPED_TRACE(row.fault);
    auto chain = Chain::create({{"fault", row.fault}});
    ASSERT_TRUE(chain.ok()) << chain.status().message();
    const Result<double> first = (*chain)->step(3);
    ASSERT_TRUE(first.ok()) << first.status().message();
    const Result<double> second = (*chain)->step(4);
    ASSERT_FALSE(second.ok());
    EXPECT_EQ(second.status().code(), row.code);
    EXPECT_THAT(second.status().message(), HasSubstr(row.message));
    const Result<double> third = (*chain)->step(5);
    ASSERT_TRUE(third.ok()) << third.status().message();
    EXPECT_EQ(*third, true_sum(5));
  }
}

// A step has several submits and copies; what fails is told once, and not by a later step.
TEST(PluginRuntime, TellsTheFirstOfManyFailuresOnce) {
  auto device = open_mock({{"fault", "copy=fail"}});
  ASSERT_TRUE(device.ok());
  auto buffer = (*device)->create_buffer(4);
  ASSERT_TRUE(buffer.ok());
  const uint32_t value = 7;
  pavo_copy_region region = {};
  region.dst = buffer->get();
  region.src_host = &value;
  region.rows = 1;
  region.row_bytes = sizeof value;
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE((*device)->copy({&region, 1}).ok());
  }
  EXPECT_EQ((*device)->wait().code(), Code::kNodeFailed);
  EXPECT_TRUE((*device)->wait().ok());
}

TEST(PluginRuntime, TellsThatADeviceIsLostAsOftenAsItIsAsked) {
  auto chain = Chain::create({{"fault", "submit@2=lost"}});
  ASSERT_TRUE(chain.ok());
  ASSERT_TRUE((*chain)->step(3).ok());
  for (int i = 0; i < 2; ++i) {
    const Result<double> lost = (*chain)->step(4);
    ASSERT_FALSE(lost.ok());
    EXPECT_EQ(lost.status().code(), Code::kDeviceLost);
    EXPECT_THAT(lost.status().message(), HasSubstr("mock: the mock was told to lose its device"));
  }
}

TEST(PluginRuntime, TurnsExceptionsIntoStatusesWhateverThrows) {
  for (const char* call :
       {"plugin_create",
        "device_count",
        "device_open",
        "timeline_create",
        "query_nodes",
        "pack_info",
        "buffer_create",
        "pack",
        "plan_create",
        "copy",
        "submit",
        "timeline_wait"}) {
    SCOPED_TRACE(call);
    auto chain = Chain::create({{"fault", std::string(call) + "@1=throw"}});
    const Status status = chain.ok() ? (*chain)->step(3).status() : chain.status();
    EXPECT_EQ(status.code(), Code::kInternal);
    EXPECT_THAT(status.message(), HasSubstr(std::string("mock: ") + call + " threw an exception"));
  }
}

TEST(PluginRuntime, AFailedAllocationIsAStatusWhicheverItIs) {
  int failures = 0;
  for (int n = 1; n < 100; ++n) {
    auto chain = Chain::create({{"fault", "buffer_create@" + std::to_string(n) + "=oom"}});
    const Status status = chain.ok() ? (*chain)->step(3).status() : chain.status();
    if (status.ok()) {
      break;
    }
    ++failures;
    EXPECT_EQ(status.code(), Code::kOutOfMemory) << status.message();
    EXPECT_THAT(status.message(), HasSubstr("buffer_create: the mock was told to have no memory"));
  }
  EXPECT_GE(failures, 3) << "weights, activations and step tensors";
}

TEST(PluginRuntime, NeedsNoHostAccessAndNoHurry) {
  for (const char* latency : {"0", "2000"}) {
    for (const char* one_queue : {"0", "1"}) {
      auto chain = Chain::create({{"latency_us", latency}, {"one_queue", one_queue}});
      ASSERT_TRUE(chain.ok()) << chain.status().message();
      for (const int32_t id : {3, 4, 3}) {
        const Result<double> sum = (*chain)->step(id);
        ASSERT_TRUE(sum.ok()) << sum.status().message();
        EXPECT_EQ(*sum, true_sum(id));
      }
    }
  }
}

}  // namespace
}  // namespace pavo
