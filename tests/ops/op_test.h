// The fixture of the op tests: every test runs on every backend, with the kernel that the plugin
// would choose and with each kernel of the op forced.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/ops/expected.h"
#include "tests/ops/op_case.h"
#include "tests/random.h"
#include "tests/tolerance.h"

namespace pavo::test {

class OpTest : public testing::TestWithParam<BackendConfig> {
 protected:
  // `arithmetic` where the backend may use it, f32 for a backend with reference kernels only.
  Arithmetic arithmetic(Arithmetic wanted) const;

  // Runs the case and compares its outputs with `expected`, in order. The bytes between the rows
  // of outputs must survive. Every backend has to accept it.
  void expect_close(const OpCase& test_case, const std::vector<Expected>& expected);

  // Runs the case; `check` looks at the result.
  void for_each_kernel(const OpCase& test_case, const std::function<void(const OpRun&)>& check);

  // The chosen kernel refuses with this reason, and so does plan_create with a message.
  void expect_refusal(const OpCase& test_case, int32_t reason, int32_t operand);

  // For indices that lead nowhere: the node is accepted, and the run fails with a message or leaves
  // them out (ops.inc); in no case is anything else touched.
  void expect_no_harm(const OpCase& test_case);

  Random random_;
};

std::string backend_name(const testing::TestParamInfo<BackendConfig>& info);

#define PAVO_INSTANTIATE_OP_TEST(suite) \
  INSTANTIATE_TEST_SUITE_P(, suite, testing::ValuesIn(backend_configs()), backend_name)

}  // namespace pavo::test
