#include "tests/ops/op_test.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

class NormTest : public OpTest {
 protected:
  struct Form {
    int32_t kind = PAVO_NORM_RMS;
    bool weight = true;
    bool bias = false;
    bool residual = false;
    bool sum = false;
    float weight_offset = 0;
    int64_t row_gap = 0;
    float eps = 1e-5F;
    int32_t weight_type = PAVO_TYPE_F32;
  };

  OpCase make(const Shape& shape, const Form& form) {
    OpCase result;
    result.set_params(pavo_op_norm, pavo_norm_params{0, form.kind, form.eps, form.weight_offset});
    int64_t count = 1;
    for (const int64_t size : shape) {
      count *= size;
    }
    const int64_t length = shape.back();
    const auto add_weight = [&](bool present) {
      if (present) {
        result.add_input(weight(
            form.weight_type,
            {length},
            random_weights(random_, form.weight_type, length),
            PAVO_USE_DENSE));
      } else {
        result.skip_input();
      }
    };
    result.add_input(activation(shape, random_.normals(count, 3), form.row_gap));
    add_weight(form.weight);
    add_weight(form.bias);
    if (form.residual) {
      result.add_input(activation(shape, random_.normals(count), form.row_gap));
    }
    result.add_output(output(shape, form.row_gap));
    if (form.sum) {
      result.add_output(output(shape, form.row_gap));
    }
    result.weight_shift = length % 2;
    return result;
  }

  static double optional(const OpCase& test_case, size_t input, int64_t index, double fallback) {
    if (input >= test_case.inputs.size() || test_case.inputs[input] == PAVO_NO_TENSOR) {
      return fallback;
    }
    const HostTensor& tensor = test_case.tensors[test_case.inputs[input]];
    return tensor.desc.role == PAVO_ROLE_WEIGHT
               ? row_value(tensor.desc.type, tensor.bytes.data(), index)
               : static_cast<double>(tensor.at(index));
  }

  static std::vector<Expected> expect(const OpCase& test_case) {
    const HostTensor& x = test_case.tensors[0];
    const auto params = read_as<pavo_norm_params>(test_case.params.data());
    const int64_t length = x.desc.shape[x.desc.rank - 1];
    std::vector<Expected> expected(test_case.outputs.size());
    for (int64_t begin = 0; begin < x.elements(); begin += length) {
      std::vector<double> s;
      double total = 0;
      double squares = 0;
      for (int64_t i = begin; i < begin + length; ++i) {
        s.push_back(static_cast<double>(x.at(i)) + optional(test_case, 3, i, 0));
        total += s.back();
        squares += s.back() * s.back();
      }
      const auto n = static_cast<double>(length);
      const auto eps = static_cast<double>(params.eps);
      double mean = 0;
      double divisor = std::sqrt(squares / n + eps);
      if (params.kind == PAVO_NORM_LAYER) {
        mean = total / n;
        double variance = 0;
        for (const double value : s) {
          variance += (value - mean) * (value - mean) / n;
        }
        divisor = std::sqrt(variance + eps);
      } else if (params.kind == PAVO_NORM_L2) {
        divisor = std::max(std::sqrt(squares), eps);
      }
      for (int64_t i = 0; i < length; ++i) {
        const double value = s[static_cast<size_t>(i)];
        const double w = optional(test_case, 1, i, 1) + static_cast<double>(params.weight_offset);
        const double b = optional(test_case, 2, i, 0);
        // An error of the mean is one of all values, however small the mean is.
        const double spread = params.kind == PAVO_NORM_LAYER ? std::sqrt(squares / n) : 0.0;
        const double scale = (std::fabs(value) + spread) / divisor;
        // The sum of squares adds up over lanes; its error is one of the common factor. The mean's
        // sum and division and the difference enter twice: in the value and in the divisor.
        const double chain = 8 + (params.kind == PAVO_NORM_LAYER ? 6 : 0) + std::sqrt(n) / 4;
        const double magnitude = scale * (std::fabs(optional(test_case, 1, i, 1)) +
                                          std::fabs(static_cast<double>(params.weight_offset))) +
                                 std::fabs(b);
        expected[0].add(
            (value - mean) / divisor * w + b,
            chain_tolerance(static_cast<int64_t>(chain), magnitude));
        if (expected.size() > 1) {
          expected[1].add(value, chain_tolerance(1, value));
        }
      }
    }
    return expected;
  }

  void check(const Shape& shape, const Form& form) {
    const OpCase test_case = make(shape, form);
    expect_close(test_case, expect(test_case));
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
    expect_close(test_case, expect(test_case));
  }
}

TEST_P(NormTest, ZerosStayZeros) {
  OpCase test_case = make({1, 40}, {});
  test_case.tensors[0] = activation({1, 40}, std::vector<float>(40, 0.0F));
  expect_close(test_case, expect(test_case));
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
