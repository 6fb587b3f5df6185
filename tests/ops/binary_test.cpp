#include "tests/ops/op_test.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

class BinaryTest : public OpTest {
 protected:
  static int64_t count(const Shape& shape) {
    int64_t product = 1;
    for (const int64_t size : shape) {
      product *= size;
    }
    return product;
  }

  OpCase make(int32_t kind, const Shape& a, HostTensor b, int64_t row_gap = 0) {
    OpCase result;
    result.set_params(pavo_op_binary, pavo_binary_params{0, kind});
    result.add_input(activation(a, random_.normals(count(a)), row_gap));
    result.add_input(std::move(b));
    result.add_output(output(a, row_gap));
    return result;
  }

  HostTensor random_activation(const Shape& shape, int64_t row_gap = 0) {
    return activation(shape, random_.normals(count(shape)), row_gap);
  }

  static double b_value(const HostTensor& b, int64_t index) {
    if (b.desc.role != PAVO_ROLE_WEIGHT) {
      return static_cast<double>(b.at(index));
    }
    return row_value(b.desc.type, b.bytes.data(), index);
  }

  static Expected expect(const OpCase& test_case) {
    const HostTensor& a = test_case.tensors[0];
    const HostTensor& b = test_case.tensors[1];
    pavo_binary_params params{};
    std::memcpy(&params, test_case.params.data(), sizeof params);
    Expected expected;
    for (int64_t i = 0; i < a.elements(); ++i) {
      int64_t rest = i;
      int64_t at = 0;
      int64_t step = 1;
      for (int32_t d = 1; d <= a.desc.rank; ++d) {
        const int64_t size = a.desc.shape[a.desc.rank - d];
        if (d <= b.desc.rank) {
          const int64_t b_size = b.desc.shape[b.desc.rank - d];
          at += (b_size == 1 ? 0 : rest % size) * step;
          step *= b_size;
        }
        rest /= size;
      }
      const auto left = static_cast<double>(a.at(i));
      const double right = b_value(b, at);
      const double value = params.kind == PAVO_BINARY_ADD   ? left + right
                           : params.kind == PAVO_BINARY_SUB ? left - right
                                                            : left * right;
      // One operation, and the rounding of decoding b.
      expected.add(
          value,
          chain_tolerance(1, value) +
              (pavo_type_block_values(b.desc.type) > 1
                   ? chain_tolerance(4, (std::fabs(right) + 1) * (std::fabs(left) + 1))
                   : 0));
    }
    return expected;
  }

  void check(const OpCase& test_case) { expect_close(test_case, {expect(test_case)}); }
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
