#include "tests/ops/op_test.h"

#include <map>
#include <memory>
#include <set>
#include <tuple>

namespace pavo::test {
namespace {

const char* op_name(int32_t op) {
  switch (op) {
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  case id:                                                          \
    return #name;
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
    default:
      return "?";
  }
}

// Opened backends by label, op and forced kernel; all closed before the program ends, since a
// device may hold threads. Also remembers which kernels have run.
class Backends : public testing::Environment {
 public:
  const Backend& get(
      const BackendConfig& config, const std::string& op, const std::string& kernel) {
    std::unique_ptr<Backend>& backend = backends_[{config.label, op, kernel}];
    if (backend == nullptr) {
      BackendConfig forced = config;
      if (!kernel.empty()) {
        forced.options["force_variant"] = op + "=" + kernel;
      }
      backend = std::make_unique<Backend>(forced);
    }
    return *backend;
  }

  void saw(const std::string& label, const std::string& op, const std::string& kernel, bool ran) {
    ran_[label + ": " + op + "=" + kernel] |= ran;
  }

  void TearDown() override {
    backends_.clear();
    EXPECT_EQ(live_host_bytes(), 0) << "bytes that the plugins did not give back";
    if (testing::GTEST_FLAG(filter) != "*") {
      return;
    }
    for (const auto& [kernel, ran] : ran_) {
      EXPECT_TRUE(ran) << kernel << " accepted no case of any test";
    }
  }

 private:
  std::map<std::tuple<std::string, std::string, std::string>, std::unique_ptr<Backend>> backends_;
  std::map<std::string, bool> ran_;
};

Backends& backends() {
  // GoogleTest owns it.
  static auto* const environment =
      static_cast<Backends*>(testing::AddGlobalTestEnvironment(new Backends));
  return *environment;
}

[[maybe_unused]] const Backends& g_registered = backends();

bool reference_only(const BackendConfig& config) {
  const auto found = config.options.find("reference");
  return found != config.options.end() && found->second != "0";
}

}  // namespace

std::string backend_name(const testing::TestParamInfo<BackendConfig>& info) {
  return info.param.label;
}

Arithmetic OpTest::arithmetic(Arithmetic wanted) const {
  return reference_only(GetParam()) ? Arithmetic::kF32 : wanted;
}

void OpTest::for_each_kernel(
    const OpCase& test_case, const std::function<void(const OpRun&)>& check) {
  const BackendConfig& config = GetParam();
  const std::string op = op_name(test_case.op);
  std::vector<std::string> kernels = {""};  // the plugin's own choice
  if (!reference_only(config)) {
    const std::vector<std::string> variants = backends().get(config, op, "").variants(op);
    kernels.insert(kernels.end(), variants.begin(), variants.end());
  }
  for (const std::string& kernel : kernels) {
    SCOPED_TRACE(
        config.label + ", " + op + ", kernel " + (kernel.empty() ? "chosen" : kernel) + ", seed " +
        std::to_string(random_.seed()));
    const OpRun run = run_case(backends().get(config, op, kernel), test_case);
    if (!kernel.empty()) {
      backends().saw(config.label, op, kernel, !run.refused());
    }
    if (run.refused() && !kernel.empty()) {
      EXPECT_NE(run.verdict.reason, PAVO_REASON_NONE);
      continue;  // not made for this case; the chosen kernel is
    }
    check(run);
  }
}

void OpTest::expect_close(const OpCase& test_case, const std::vector<Expected>& expected) {
  for_each_kernel(test_case, [&](const OpRun& run) {
    ASSERT_FALSE(run.refused()) << run.verdict.text;
    ASSERT_EQ(run.code, PAVO_OK) << run.message;
    EXPECT_EQ(run.damage, std::vector<std::string>());
    for (size_t i = 0; i < expected.size(); ++i) {
      SCOPED_TRACE("output " + std::to_string(i));
      const uint32_t index = test_case.outputs[i];
      EXPECT_EQ(
          compare_output(test_case.tensors[index], run.tensors[index], expected[i]),
          std::vector<std::string>());
    }
  });
}

void OpTest::expect_refusal(const OpCase& test_case, int32_t reason, int32_t operand) {
  const std::string op = op_name(test_case.op);
  const OpRun run = run_case(backends().get(GetParam(), op, ""), test_case);
  EXPECT_TRUE(run.refused()) << op << " was accepted";
  EXPECT_EQ(run.verdict.reason, reason) << run.verdict.text;
  // Of operands that do not fit each other, either may be named.
  if (reason != PAVO_REASON_SHAPE_MISMATCH) {
    EXPECT_EQ(run.verdict.operand, operand) << run.verdict.text;
  }
  EXPECT_NE(std::string(run.verdict.text), "");
  EXPECT_NE(run.code, PAVO_OK) << "a plan was made of a refused node";
  EXPECT_NE(run.message, "");
}

void OpTest::expect_no_harm(const OpCase& test_case) {
  for_each_kernel(test_case, [&](const OpRun& run) {
    ASSERT_FALSE(run.refused()) << run.verdict.text;
    EXPECT_TRUE(run.code == PAVO_OK || run.code == PAVO_ERROR_NODE_FAILED) << run.code;
    EXPECT_EQ(run.code == PAVO_OK, run.message.empty()) << run.message;
    EXPECT_EQ(run.damage, std::vector<std::string>());
  });
}

}  // namespace pavo::test
