#include "tests/ops/glu_case.h"
#include "tests/ops/op_test.h"

namespace pavo::test {
namespace {

class GluTest : public OpTest {
 protected:
  OpCase make(const Shape& shape, const GluForm& form) { return make_glu(random_, shape, form); }

  void check(const Shape& shape, const GluForm& form) {
    const OpCase test_case = make(shape, form);
    expect_close(test_case, {expect_glu(test_case)});
  }
};

constexpr int32_t kKinds[] = {
    PAVO_GLU_SILU, PAVO_GLU_GELU_TANH, PAVO_GLU_GELU_ERF, PAVO_GLU_CLAMPED};

TEST_P(GluTest, EveryKindAndOddLengths) {
  for (const int32_t kind : kKinds) {
    for (const bool packed : {false, true}) {
      for (const int64_t length : {1, 3, 7, 8, 15, 16, 17, 33, 64, 100}) {
        SCOPED_TRACE("kind " + std::to_string(kind) + ", N " + std::to_string(length));
        check({3, length}, {kind, packed});
      }
    }
  }
}

TEST_P(GluTest, LargeAndTinyGates) {
  for (const int32_t kind : kKinds) {
    for (const float deviation : {1e-6F, 0.1F, 30.0F, 1000.0F}) {
      SCOPED_TRACE("kind " + std::to_string(kind) + ", size " + std::to_string(deviation));
      check({2, 64}, {kind, false, 0, deviation});
    }
  }
}

TEST_P(GluTest, ManyRowsAndStrides) {
  for (const int32_t kind : kKinds) {
    check({64, 1536}, {kind, false});
    check({5, 40}, {kind, true, 12});
    check({2, 3, 20}, {kind, false, 8});
  }
}

TEST_P(GluTest, RefusesWhatDoesNotFit) {
  OpCase test_case = make({2, 8}, {});
  test_case.tensors[1] = activation({2, 9}, random_.normals(18));
  expect_refusal(test_case, PAVO_REASON_SHAPE_MISMATCH, 1);
  test_case = make({2, 8}, {PAVO_GLU_SILU, true});
  test_case.tensors[1] = output({2, 7});
  expect_refusal(test_case, PAVO_REASON_SHAPE_MISMATCH, 0);
  expect_refusal(make({2, 8}, {17}), PAVO_REASON_PARAM, -1);
}

PAVO_INSTANTIATE_OP_TEST(GluTest);

}  // namespace
}  // namespace pavo::test
