#include "tests/ops/matmul_case.h"
#include "tests/ops/op_test.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

class MatmulTest : public OpTest {
 protected:
  using Sizes = MatmulSizes;

  OpCase make(int32_t type, const Sizes& sizes) { return make_matmul(random_, type, sizes); }

  Expected expect(const OpCase& test_case) const {
    return expect_matmul(test_case, arithmetic(matmul_arithmetic(test_case)));
  }

  void check(int32_t type, const Sizes& sizes) {
    SCOPED_TRACE(
        std::string(pavo_type_name(type)) + " T=" + std::to_string(sizes.tokens) +
        " N=" + std::to_string(sizes.columns) + " K=" + std::to_string(sizes.depth));
    OpCase test_case = make(type, sizes);
    test_case.weight_shift = sizes.columns % 2;
    expect_close(test_case, {expect(test_case)});
  }
};

TEST_P(MatmulTest, EveryTypeAndOddSizes) {
  for (const int32_t type : kWeightTypes) {
    const int64_t block = pavo_type_block_values(type);
    for (const int64_t tokens : {1, 2, 3, 5, 8, 17}) {
      for (const int64_t columns : {1, 3, 16, 37}) {
        check(type, {tokens, columns, block * (block == 256 ? 1 : 3)});
      }
    }
    for (const int64_t blocks : {1, 2, 5, 7}) {
      check(type, {4, 9, blocks * block});
    }
  }
}

TEST_P(MatmulTest, DepthsThatAreNoMultipleOfAVector) {
  for (const int32_t type : {PAVO_TYPE_F32, PAVO_TYPE_F16, PAVO_TYPE_BF16}) {
    for (const int64_t depth : {1, 7, 15, 17, 31, 33, 63, 65, 100}) {
      check(type, {1, 5, depth});
      check(type, {6, 5, depth});
    }
  }
}

TEST_P(MatmulTest, ModelSizes) {
  for (const int32_t type : kWeightTypes) {
    const int64_t depth = pavo_type_block_values(type) == 256 ? 768 : 576;
    check(type, {1, 200, depth});
    check(type, {33, 130, depth});
  }
}

TEST_P(MatmulTest, ExactHasF32Activations) {
  for (const int32_t type : kWeightTypes) {
    check(type, {1, 20, 512, false, PAVO_PRECISION_EXACT});
    check(type, {7, 20, 512, false, PAVO_PRECISION_EXACT});
  }
}

TEST_P(MatmulTest, BiasAndStrides) {
  for (const int32_t type : kWeightTypes) {
    check(type, {3, 13, 256, true, PAVO_PRECISION_DEFAULT, 20});
    check(type, {1, 13, 256, true, PAVO_PRECISION_EXACT, 4});
  }
}

TEST_P(MatmulTest, EmptyDimensions) {
  OpCase test_case = make(PAVO_TYPE_Q4_0, {0, 8, 64});
  expect_close(test_case, {Expected()});
  test_case = make(PAVO_TYPE_F32, {2, 3, 0, true});
  expect_close(test_case, {expect(test_case)});
}

TEST_P(MatmulTest, RefusesWhatDoesNotFit) {
  const Sizes sizes = {2, 4, 64};
  OpCase test_case = make(PAVO_TYPE_F32, sizes);
  test_case.tensors[1] = make(PAVO_TYPE_F32, {2, 4, 65}).tensors[1];
  expect_refusal(test_case, PAVO_REASON_SHAPE_MISMATCH, 1);
  test_case = make(PAVO_TYPE_F32, sizes);
  test_case.tensors[2] = output({2, 5});
  expect_refusal(test_case, PAVO_REASON_SHAPE_MISMATCH, 2);
  test_case = make(PAVO_TYPE_F32, sizes);
  test_case.tensors[0].desc.stride[1] = 8;
  expect_refusal(test_case, PAVO_REASON_STRIDE, 0);
  test_case = make(PAVO_TYPE_F32, sizes);
  test_case.tensors[2].desc.stride[0] = 8;
  expect_refusal(test_case, PAVO_REASON_STRIDE, 2);
  test_case = make(PAVO_TYPE_F32, sizes);
  test_case.tensors[1] = activation({4, 64}, random_.normals(4 * 64));
  expect_refusal(test_case, PAVO_REASON_ROLE, 1);
  test_case = make(PAVO_TYPE_F32, sizes);
  test_case.tensors[1].desc.type = PAVO_TYPE_I32;
  expect_refusal(test_case, PAVO_REASON_TYPE, 1);
  test_case = make(PAVO_TYPE_F32, {2, 4, 64, false, 7});
  expect_refusal(test_case, PAVO_REASON_PARAM, -1);
}

PAVO_INSTANTIATE_OP_TEST(MatmulTest);

}  // namespace
}  // namespace pavo::test
