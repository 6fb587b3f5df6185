// Every op over every plugin: the families of cases of tests/ops/<op>_case.cpp at the sizes that
// they begin with. The conformance kit goes further, around every size that a plugin says is a
// bound.
#include <string>
#include <vector>

#include "tests/ops/family.h"
#include "tests/ops/op_test.h"

namespace pavo::test {
namespace {

class EveryOpTest : public OpTest {};

TEST_P(EveryOpTest, ComputesWhatItAccepts) {
  for (const OpName& op : all_ops()) {
    int accepted = 0;
    for (const Family& family : families_of(op.op)) {
      SCOPED_TRACE(std::string(op.name) + " " + family.name);
      const OpCase test_case = family.make(random_, base_sizes(family));
      const Judge judge = family.judge(test_case);
      for_each_kernel(test_case, [&](const OpRun& run) {
        if (run.refused()) {
          EXPECT_NE(run.verdict.reason, PAVO_REASON_NONE);
          return;
        }
        ++accepted;
        ASSERT_EQ(run.code, PAVO_OK) << run.message;
        EXPECT_EQ(run.damage, std::vector<std::string>());
        EXPECT_EQ(judge(run), std::vector<std::string>());
      });
    }
    EXPECT_GT(accepted, 0) << op.name << ": the plugin accepts no case";
  }
}

PAVO_INSTANTIATE_OP_TEST(EveryOpTest);

}  // namespace
}  // namespace pavo::test
