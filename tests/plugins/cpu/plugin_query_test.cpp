// What the CPU plugin answers before anything runs: options, devices, predicates.
#include <limits>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "tests/plugins/cpu/single_node.h"
#include "tests/random.h"

namespace pavo::test {
namespace {

BackendConfig config(const std::map<std::string, std::string>& options = {}) {
  return {PAVO_CPU_PLUGIN, options, "cpu"};
}

// Message of the exception that opening throws; "" if it opens.
std::string open_error(const std::map<std::string, std::string>& options) {
  try {
    const Backend backend(config(options));
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

testing::AssertionResult mentions(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos
             ? testing::AssertionSuccess()
             : testing::AssertionFailure() << "'" << part << "' is not in: " << text;
}

TEST(CpuOptions, NameTheKeyAndWhatIsValid) {
  EXPECT_EQ(open_error({{"threads", "2"}, {"reference", "1"}}), "");
  const std::string unknown = open_error({{"thread", "2"}});
  EXPECT_TRUE(mentions(unknown, "'thread'"));
  EXPECT_TRUE(mentions(unknown, "threads, reference, force_variant, refuse, simd"));
  EXPECT_TRUE(mentions(open_error({{"threads", "-1"}}), "threads: expected 0..1024, got -1"));
  EXPECT_TRUE(mentions(open_error({{"threads", "1025"}}), "got 1025"));
  EXPECT_TRUE(mentions(open_error({{"reference", "2"}}), "reference: expected 0..1, got 2"));
  EXPECT_TRUE(mentions(open_error({{"refuse", "matmul,mat"}}), "no op is named 'mat'"));
  EXPECT_TRUE(mentions(open_error({{"force_variant", "norm"}}), "expected op=kernel, got 'norm'"));
  EXPECT_TRUE(mentions(open_error({{"force_variant", "norm=x"}}), "it has reference, norm_rows"));
  EXPECT_TRUE(mentions(open_error({{"simd", "MMX"}}), "no 'MMX'; it has "));
}

TEST(CpuOptions, WrongTypeIsRefused) {
  const Backend backend(config());
  pavo_value value{};
  value.struct_size = sizeof value;
  value.type = PAVO_VALUE_STRING;
  value.key = sdk::string("threads");
  value.string_value = sdk::string("2");
  const pavo_value* const items[] = {&value};
  const pavo_values list = {sizeof list, 1, items};
  pavo_plugin* plugin = nullptr;
  pavo_error error = empty_error();
  EXPECT_EQ(backend.api().plugin_create(&list, &plugin, &error), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(plugin, nullptr);
  EXPECT_TRUE(mentions(error.message, "threads: expected an integer, got a string"));
}

TEST(CpuOptions, RefuseAndForceSteerTheChoice) {
  const MatmulNode node;
  pavo_verdict verdict{};
  pavo_error error = empty_error();
  const Backend refusing(config({{"refuse", "norm,matmul"}}));
  ASSERT_EQ(node.query(refusing, &verdict, &error), PAVO_OK);
  EXPECT_EQ(verdict.decision, PAVO_REFUSE);
  EXPECT_EQ(verdict.reason, PAVO_REASON_POLICY);
  const Backend forcing(config({{"force_variant", "matmul=reference"}}));
  ASSERT_EQ(node.query(forcing, &verdict, &error), PAVO_OK);
  EXPECT_EQ(verdict.decision, PAVO_ACCEPT_SLOW);
  EXPECT_STREQ(verdict.variant, "reference");
}

TEST(CpuDevice, IsTheOneNamedCpu) {
  const Backend backend(config({{"threads", "3"}}));
  pavo_device_info info{};
  info.struct_size = sizeof info;
  pavo_error error = empty_error();
  ASSERT_EQ(backend.api().device_info(backend.plugin(), 0, &info, &error), PAVO_OK);
  EXPECT_EQ(sdk::view(info.id), "cpu");
  EXPECT_NE(sdk::view(info.name), "");
  std::map<std::string, double> numbers;
  for (uint32_t i = 0; i < info.caps->count; ++i) {
    const pavo_value& cap = *info.caps->items[i];
    numbers[std::string(sdk::view(cap.key))] =
        cap.type == PAVO_VALUE_INT ? static_cast<double>(cap.int_value) : cap.float_value;
  }
  EXPECT_GT(numbers[PAVO_CAP_MEMORY_BYTES], 1e8);
  EXPECT_GT(numbers[PAVO_CAP_BANDWIDTH], 1e9);
  EXPECT_GT(numbers[PAVO_CAP_F32_FLOPS], 1e9);
  EXPECT_EQ(numbers["threads"], 3);
  EXPECT_EQ(
      backend.api().device_info(backend.plugin(), 1, &info, &error), PAVO_ERROR_INVALID_ARGUMENT);
  const pavo_string other = sdk::string("GPU-0");
  pavo_device* device = nullptr;
  EXPECT_EQ(
      backend.api().device_open(backend.plugin(), &other, &device, &error), PAVO_ERROR_NO_DEVICE);
}

TEST(CpuQuery, AcceptsWithANameAndAnEstimate) {
  const Backend backend(config());
  const MatmulNode node;
  pavo_verdict verdict{};
  pavo_error error = empty_error();
  ASSERT_EQ(node.query(backend, &verdict, &error), PAVO_OK);
  EXPECT_NE(verdict.decision, PAVO_REFUSE);
  EXPECT_EQ(verdict.reason, PAVO_REASON_NONE);
  EXPECT_NE(std::string(verdict.variant), "");
  EXPECT_GT(verdict.est_ns, 0);
  EXPECT_EQ(verdict.est_source, PAVO_EST_MODEL);
  EXPECT_EQ(verdict.kv_rows_min, 0);
  EXPECT_EQ(verdict.kv_rows_max, INT64_MAX);
}

class CpuMalformed : public testing::Test {
 protected:
  void expect_refused(const MatmulNode& node, int32_t reason, int32_t operand) {
    pavo_verdict verdict{};
    pavo_error error = empty_error();
    ASSERT_EQ(node.query(backend_, &verdict, &error), PAVO_OK) << error.message;
    EXPECT_EQ(verdict.decision, PAVO_REFUSE);
    EXPECT_EQ(verdict.reason, reason) << verdict.text;
    EXPECT_EQ(verdict.operand, operand) << verdict.text;
    pavo_plan* plan = nullptr;
    pavo_plan_info info{};
    info.struct_size = sizeof info;
    EXPECT_EQ(
        backend_.api().plan_create(backend_.device(), &node.graph, &plan, &info, &error),
        PAVO_ERROR_INVALID_ARGUMENT);
    EXPECT_TRUE(mentions(error.message, "node 77 (blk.0.test)"));
    EXPECT_EQ(plan, nullptr);
  }

  void expect_error(const MatmulNode& node, int32_t code) {
    pavo_verdict verdict{};
    pavo_error error = empty_error();
    EXPECT_EQ(node.query(backend_, &verdict, &error), code);
    EXPECT_GT(error.message_size, 0U);
  }

  Backend backend_{config()};
};

TEST_F(CpuMalformed, Operands) {
  MatmulNode node;
  node.inputs[1] = 3;
  expect_refused(node, PAVO_REASON_OPERAND, 1);
  node.inputs[1] = 1;
  node.node.input_count = 1;
  expect_refused(node, PAVO_REASON_OPERAND, -1);
  node.node.input_count = 2;
  node.node.output_count = 2;
  expect_refused(node, PAVO_REASON_OPERAND, -1);
  node.node.output_count = 1;
  node.outputs[0] = PAVO_NO_TENSOR;
  expect_refused(node, PAVO_REASON_OPERAND, 2);
}

TEST_F(CpuMalformed, Shapes) {
  const auto refused = [&](auto spoil, int32_t reason, int32_t operand) {
    MatmulNode node;
    spoil(node.tensors[operand]);
    expect_refused(node, reason, operand);
  };
  constexpr int64_t kHuge = int64_t{1} << 62;
  refused([](pavo_tensor& t) { t.rank = 5; }, PAVO_REASON_SHAPE_RANGE, 0);
  refused([](pavo_tensor& t) { t.rank = -1; }, PAVO_REASON_SHAPE_RANGE, 1);
  refused([](pavo_tensor& t) { t.shape[0] = -1; }, PAVO_REASON_SHAPE_RANGE, 1);
  refused([](pavo_tensor& t) { t.shape[0] = kHuge; }, PAVO_REASON_SHAPE_RANGE, 1);
  refused([](pavo_tensor& t) { t.shape[1] = INT64_MAX; }, PAVO_REASON_SHAPE_RANGE, 1);
  refused([](pavo_tensor& t) { t.stride[0] = INT64_MAX - 3; }, PAVO_REASON_SHAPE_RANGE, 0);
  refused([](pavo_tensor& t) { t.stride[0] = -4; }, PAVO_REASON_STRIDE, 0);
  refused([](pavo_tensor& t) { t.stride[0] = 127; }, PAVO_REASON_STRIDE, 0);
  refused([](pavo_tensor& t) { t.stride[0] = 4; }, PAVO_REASON_STRIDE, 2);
  refused([](pavo_tensor& t) { t.type = 999; }, PAVO_REASON_TYPE, 1);
  refused([](pavo_tensor& t) { t.type = PAVO_TYPE_Q8_KV; }, PAVO_REASON_SHAPE_RANGE, 1);
  refused([](pavo_tensor& t) { t.role = 17; }, PAVO_REASON_ROLE, 0);
}

TEST_F(CpuMalformed, Parameters) {
  MatmulNode node;
  node.node.op = 4711;
  expect_refused(node, PAVO_REASON_OP, -1);
  node.node.op = pavo_op_matmul;
  node.params.struct_size = 4;
  expect_refused(node, PAVO_REASON_PARAM, -1);
  // A longer struct is fine while what this plugin does not know is zero.
  struct {
    pavo_matmul_params known;
    int32_t later;
  } longer = {{sizeof longer, PAVO_PRECISION_EXACT}, 0};
  node.node.params = &longer;
  pavo_verdict verdict{};
  pavo_error error = empty_error();
  ASSERT_EQ(node.query(backend_, &verdict, &error), PAVO_OK);
  EXPECT_NE(verdict.decision, PAVO_REFUSE) << verdict.text;
  longer.later = 1;
  expect_refused(node, PAVO_REASON_PARAM, -1);
  node.node.params = nullptr;
  expect_refused(node, PAVO_REASON_PARAM, -1);
}

TEST_F(CpuMalformed, Structs) {
  MatmulNode node;
  node.graph.struct_size = 8;
  expect_error(node, PAVO_ERROR_INVALID_ARGUMENT);
  node.graph.struct_size = sizeof node.graph;
  node.graph.bucket = nullptr;
  expect_error(node, PAVO_ERROR_INVALID_ARGUMENT);
  node.graph.bucket = &node.bucket;
  node.tensor_list[1] = nullptr;
  expect_error(node, PAVO_ERROR_INVALID_ARGUMENT);
  node.tensor_list[1] = &node.tensors[1];
  node.node.inputs = nullptr;
  expect_error(node, PAVO_ERROR_INVALID_ARGUMENT);
  node.node.inputs = node.inputs;
  node.node.input_count = 1U << 30;
  expect_error(node, PAVO_ERROR_INVALID_ARGUMENT);
  node.node.input_count = 2;
  struct {
    pavo_tensor known;
    int64_t later;
  } longer = {node.tensors[0], 5};
  longer.known.struct_size = sizeof longer;
  node.tensor_list[0] = &longer.known;
  expect_error(node, PAVO_ERROR_UNSUPPORTED_FIELD);
}

// Whatever the numbers are: an answer, and a plan exactly if the node was accepted.
TEST_F(CpuMalformed, RandomNumbersGetAnAnswer) {
  constexpr int64_t kNasty[] = {0,        1,         2,         3,  4,         31,        32,
                                63,       64,        65,        -1, INT32_MAX, INT32_MIN, 1L << 40,
                                1L << 62, INT64_MAX, INT64_MIN, 12, 256,       128};
  Random random;
  SCOPED_TRACE("seed " + std::to_string(random.seed()));
  const auto nasty = [&] {
    return kNasty[random.integer(0, static_cast<int64_t>(std::size(kNasty)) - 1)];
  };
  int64_t accepted = 0;
  for (int i = 0; i < 20000; ++i) {
    MatmulNode node;
    for (int64_t spoils = random.integer(0, 4); spoils > 0; --spoils) {
      pavo_tensor& tensor = node.tensors[random.integer(0, 2)];
      const auto index = static_cast<size_t>(random.integer(0, 3));
      switch (random.integer(0, 6)) {
        case 0:
          tensor.shape[index] = nasty();
          break;
        case 1:
          tensor.stride[index] = nasty();
          break;
        case 2:
          tensor.rank = static_cast<int32_t>(random.integer(-1, 5));
          break;
        case 3:
          tensor.type = static_cast<int32_t>(random.integer(-1, 41));
          break;
        case 4:
          tensor.role = static_cast<int32_t>(random.integer(-1, 5));
          break;
        case 5:
          node.inputs[random.integer(0, 1)] = static_cast<uint32_t>(random.integer(0, 3));
          break;
        default:
          node.node.op = static_cast<int32_t>(random.integer(0, 9));
      }
    }
    pavo_verdict verdict{};
    pavo_error error = empty_error();
    ASSERT_EQ(node.query(backend_, &verdict, &error), PAVO_OK) << error.message;
    pavo_plan* plan = nullptr;
    pavo_plan_info info{};
    info.struct_size = sizeof info;
    const int32_t code =
        backend_.api().plan_create(backend_.device(), &node.graph, &plan, &info, &error);
    ASSERT_EQ(code == PAVO_OK, verdict.decision != PAVO_REFUSE) << verdict.text;
    accepted += code == PAVO_OK ? 1 : 0;
    if (code == PAVO_OK) {
      EXPECT_EQ(info.launches, 1);
      EXPECT_GE(info.workspace_bytes, verdict.workspace_bytes);
      backend_.api().plan_destroy(plan);
    }
  }
  EXPECT_GT(accepted, 1000);
}

}  // namespace
}  // namespace pavo::test
