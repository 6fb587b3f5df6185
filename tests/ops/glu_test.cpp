#include <numbers>

#include "tests/ops/op_test.h"

namespace pavo::test {
namespace {

class GluTest : public OpTest {
 protected:
  struct Form {
    int32_t kind = PAVO_GLU_SILU;
    bool packed = false;  // gate and up in one tensor
    int64_t row_gap = 0;
    float deviation = 2;
  };

  OpCase make(const Shape& shape, const Form& form) {
    OpCase result;
    result.set_params(pavo_op_glu, pavo_glu_params{0, form.kind, 1.702F, 3.0F});
    int64_t count = 1;
    for (const int64_t size : shape) {
      count *= size;
    }
    if (form.packed) {
      Shape wide = shape;
      wide.back() *= 2;
      result.add_input(activation(wide, random_.normals(2 * count, form.deviation), form.row_gap));
    } else {
      result.add_input(activation(shape, random_.normals(count, form.deviation), form.row_gap));
      result.add_input(activation(shape, random_.normals(count, form.deviation), form.row_gap));
    }
    result.add_output(output(shape, form.row_gap));
    return result;
  }

  static double activate(int32_t kind, double x) {
    if (kind == PAVO_GLU_GELU_ERF) {
      return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
    }
    // tanh(z) = 2 sigmoid(2 z) - 1, so gelu's approximation is x * sigmoid(2 z).
    const double z = kind == PAVO_GLU_GELU_TANH
                         ? 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * std::pow(x, 3))
                         : x;
    return x / (1 + std::exp(-z));
  }

  static Expected expect(const OpCase& test_case) {
    const auto p = read_params(test_case);
    const HostTensor& gate = test_case.tensors[0];
    const bool packed = test_case.inputs.size() == 1;
    const HostTensor& out = test_case.output_tensor(0);
    const int64_t length = out.desc.shape[out.desc.rank - 1];
    Expected expected;
    for (int64_t i = 0; i < out.elements(); ++i) {
      const int64_t in_gate = packed ? i / length * 2 * length + i % length : i;
      const auto g = static_cast<double>(gate.at(in_gate));
      const auto u =
          static_cast<double>(packed ? gate.at(in_gate + length) : test_case.tensors[1].at(i));
      double value = 0;
      if (p.kind == PAVO_GLU_CLAMPED) {
        const auto limit = static_cast<double>(p.limit);
        const double low = std::min(g, limit);
        value = low / (1 + std::exp(-static_cast<double>(p.alpha) * low)) *
                (std::min(limit, std::max(-limit, u)) + 1);
      } else {
        value = activate(p.kind, g) * u;
      }
      // Activations are products of about ten operations; near zero their value, not their error,
      // vanishes.
      expected.add(
          value,
          chain_tolerance(16, std::fabs(value)) + chain_tolerance(4, 1e-2 * std::fabs(g * u)));
    }
    return expected;
  }

  static pavo_glu_params read_params(const OpCase& test_case) {
    pavo_glu_params params{};
    std::memcpy(&params, test_case.params.data(), sizeof params);
    return params;
  }

  void check(const Shape& shape, const Form& form) {
    const OpCase test_case = make(shape, form);
    expect_close(test_case, {expect(test_case)});
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
