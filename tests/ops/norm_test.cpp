#include <cmath>

#include "tests/ops/norm_case.h"
#include "tests/ops/op_test.h"

namespace pavo::test {
namespace {

class NormTest : public OpTest {
 protected:
  using Form = NormForm;

  OpCase make(const Shape& shape, const Form& form) { return make_norm(random_, shape, form); }

  void check(const Shape& shape, const Form& form) {
    const OpCase test_case = make(shape, form);
    expect_close(test_case, expect_norm(test_case));
  }
};

TEST_P(NormTest, RmsOfOddLengths) {
  for (const int64_t length : {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 64, 65, 576, 1027}) {
    SCOPED_TRACE(length);
    check({1, length}, {});
    check({5, length}, {});
  }
}

TEST_P(NormTest, EveryKindAndOperand) {
  for (const int32_t kind : {PAVO_NORM_RMS, PAVO_NORM_LAYER, PAVO_NORM_L2}) {
    for (int bits = 0; bits < 16; ++bits) {
      SCOPED_TRACE("kind " + std::to_string(kind) + ", operands " + std::to_string(bits));
      Form form;
      form.kind = kind;
      form.weight = (bits & 1) != 0;
      form.bias = (bits & 2) != 0;
      form.residual = (bits & 4) != 0;
      form.sum = (bits & 8) != 0;
      form.weight_offset = form.weight ? 1.0F : 0.0F;
      check({3, 70}, form);
    }
  }
}

TEST_P(NormTest, EveryWeightType) {
  for (const int32_t type : {PAVO_TYPE_F16, PAVO_TYPE_BF16}) {
    Form form;
    form.weight_type = type;
    form.bias = true;
    check({2, 45}, form);
  }
}

TEST_P(NormTest, ManyRowsAndHeads) {
  Form form;
  form.residual = true;
  form.sum = true;
  check({200, 96}, form);
  check({7, 3, 64}, form);
  form.row_gap = 16;
  check({9, 40}, form);
  check({4, 3, 2, 24}, form);
}

TEST_P(NormTest, SmallAndLargeValues) {
  for (const float size : {1e-20F, 1e-6F, 1e6F, 1e17F}) {
    SCOPED_TRACE(size);
    OpCase test_case = make({2, 64}, {});
    test_case.tensors[0] = activation({2, 64}, random_.normals(128, size));
    expect_close(test_case, expect_norm(test_case));
  }
}

TEST_P(NormTest, ZerosStayZeros) {
  OpCase test_case = make({1, 40}, {});
  test_case.tensors[0] = activation({1, 40}, std::vector<float>(40, 0.0F));
  expect_close(test_case, expect_norm(test_case));
}

TEST_P(NormTest, NoRows) {
  check({0, 16}, {});
}

TEST_P(NormTest, RefusesWhatDoesNotFit) {
  OpCase test_case = make({2, 8}, {});
  test_case.tensors[1] = weight_f32(random_.normals(9));
  expect_refusal(test_case, PAVO_REASON_SHAPE_MISMATCH, 1);
  Form form;
  form.kind = 3;
  expect_refusal(make({2, 8}, form), PAVO_REASON_PARAM, -1);
  form = {};
  form.eps = NAN;
  expect_refusal(make({2, 8}, form), PAVO_REASON_PARAM, -1);
  form = {};
  form.residual = true;
  test_case = make({2, 8}, form);
  test_case.tensors[2] = activation({1, 8}, random_.normals(8));
  expect_refusal(test_case, PAVO_REASON_SHAPE_MISMATCH, 3);
}

PAVO_INSTANTIATE_OP_TEST(NormTest);

}  // namespace
}  // namespace pavo::test
