#include <utility>

#include "tests/ops/binary_case.h"
#include "tests/ops/op_test.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

class BinaryTest : public OpTest {
 protected:
  OpCase make(int32_t kind, const Shape& a, HostTensor b, int64_t row_gap = 0) {
    return make_binary(random_, kind, a, std::move(b), row_gap);
  }

  HostTensor random_activation(const Shape& shape, int64_t row_gap = 0) {
    return test::random_activation(random_, shape, row_gap);
  }

  void check(const OpCase& test_case) { expect_close(test_case, {expect_binary(test_case)}); }
};

constexpr int32_t kKinds[] = {PAVO_BINARY_ADD, PAVO_BINARY_SUB, PAVO_BINARY_MUL};

TEST_P(BinaryTest, SameShape) {
  for (const int32_t kind : kKinds) {
    for (const int64_t length : {1, 5, 8, 16, 17, 63, 64, 576}) {
      check(make(kind, {3, length}, random_activation({3, length})));
    }
  }
  check(make(PAVO_BINARY_ADD, {300, 576}, random_activation({300, 576})));
}

TEST_P(BinaryTest, Broadcast) {
  for (const int32_t kind : kKinds) {
    check(make(kind, {4, 3, 21}, random_activation({21})));
    check(make(kind, {4, 3, 21}, random_activation({1})));
    check(make(kind, {4, 3, 21}, random_activation({3, 21})));
    check(make(kind, {4, 3, 21}, random_activation({3, 1})));
    check(make(kind, {4, 3, 21}, random_activation({4, 1, 21})));
    check(make(kind, {4, 3, 21}, random_activation({4, 1, 1})));
    check(make(kind, {2, 4, 3, 5}, random_activation({4, 1, 5})));
  }
}

TEST_P(BinaryTest, Weights) {
  for (const int32_t type : {PAVO_TYPE_F32, PAVO_TYPE_F16, PAVO_TYPE_BF16}) {
    OpCase test_case = make(
        PAVO_BINARY_MUL,
        {3, 64},
        weight(type, {64}, random_weights(random_, type, 64), PAVO_USE_DENSE));
    test_case.weight_shift = 1;
    check(test_case);
    check(make(
        PAVO_BINARY_ADD,
        {3, 2, 32},
        weight(type, {2, 32}, random_weights(random_, type, 64), PAVO_USE_DENSE)));
  }
}

TEST_P(BinaryTest, Strides) {
  check(make(PAVO_BINARY_SUB, {5, 19}, random_activation({5, 19}, 20), 8));
  check(make(PAVO_BINARY_MUL, {2, 3, 4, 6}, random_activation({3, 1, 6}, 4), 12));
}

TEST_P(BinaryTest, RefusesWhatDoesNotFit) {
  expect_refusal(
      make(PAVO_BINARY_ADD, {4, 6}, random_activation({4, 5})), PAVO_REASON_SHAPE_MISMATCH, 1);
  expect_refusal(
      make(PAVO_BINARY_ADD, {6}, random_activation({1, 6})), PAVO_REASON_SHAPE_MISMATCH, 1);
  expect_refusal(make(5, {4, 6}, random_activation({6})), PAVO_REASON_PARAM, -1);
}

PAVO_INSTANTIATE_OP_TEST(BinaryTest);

}  // namespace
}  // namespace pavo::test
