#include "tests/ops/embed_case.h"
#include "tests/ops/op_test.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

class EmbedTest : public OpTest {
 protected:
  template <typename... Rest>
  OpCase make(
      int32_t type,
      int64_t vocabulary,
      int64_t columns,
      const std::vector<int32_t>& ids,
      Rest... rest) {
    return make_embed(random_, type, vocabulary, columns, ids, rest...);
  }
};

TEST_P(EmbedTest, ReadsRowsOfEveryType) {
  for (const int32_t type : kWeightTypes) {
    SCOPED_TRACE(pavo_type_name(type));
    const int64_t block = pavo_type_block_values(type);
    for (const int64_t columns : {block, 3 * block, block == 1 ? int64_t{67} : 5 * block}) {
      OpCase test_case = make(type, 11, columns, {3, 0, 10, 3, 7});
      test_case.weight_shift = columns % 2;
      expect_close(test_case, {expect_embed(test_case)});
    }
  }
}

TEST_P(EmbedTest, ManyRows) {
  std::vector<int32_t> ids(300);
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random_.integer(0, 99));
  }
  const OpCase test_case = make(PAVO_TYPE_Q8_0, 100, 320, ids);
  expect_close(test_case, {expect_embed(test_case)});
}

TEST_P(EmbedTest, IdsOutsideOfTheTableGiveZeros) {
  const OpCase test_case = make(PAVO_TYPE_F16, 5, 40, {-1, 5, 4, INT32_MAX, INT32_MIN});
  expect_close(test_case, {expect_embed(test_case)});
}

TEST_P(EmbedTest, WritesStridedRows) {
  const OpCase test_case = make(PAVO_TYPE_Q4_0, 5, 64, {1, 2, 3}, 12);
  expect_close(test_case, {expect_embed(test_case)});
}

TEST_P(EmbedTest, GathersActivations) {
  OpCase test_case;
  test_case.set_params(pavo_op_embed, pavo_embed_params{});
  const std::vector<float> table = random_.normals(6 * 33);
  test_case.add_input(activation({6, 33}, table, 8));
  test_case.add_input(step({4}, {5, 0, 5, 2}));
  test_case.add_output(output({4, 33}));
  Expected expected;
  for (const int64_t id : {5, 0, 5, 2}) {
    for (int64_t i = 0; i < 33; ++i) {
      expected.add(static_cast<double>(table[static_cast<size_t>(id * 33 + i)]), 0);
    }
  }
  expect_close(test_case, {expected});
}

TEST_P(EmbedTest, NoTokens) {
  const OpCase test_case = make(PAVO_TYPE_F32, 5, 8, {});
  expect_close(test_case, {Expected()});
}

TEST_P(EmbedTest, RefusesWhatDoesNotFit) {
  OpCase test_case = make(PAVO_TYPE_F32, 5, 8, {1, 2});
  test_case.tensors[2] = output({2, 9});
  expect_refusal(test_case, PAVO_REASON_SHAPE_MISMATCH, 2);
  test_case = make(PAVO_TYPE_F32, 5, 8, {1, 2});
  test_case.tensors[1] = step_f32({2}, {1, 2});
  expect_refusal(test_case, PAVO_REASON_TYPE, 1);
  test_case = make(PAVO_TYPE_F32, 5, 8, {1, 2});
  test_case.inputs[0] = PAVO_NO_TENSOR;
  expect_refusal(test_case, PAVO_REASON_OPERAND, 0);
}

PAVO_INSTANTIATE_OP_TEST(EmbedTest);

}  // namespace
}  // namespace pavo::test
