#include "tests/ops/op_test.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

double norm(const double* values, int64_t count) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    sum += values[i] * values[i];
  }
  return std::sqrt(sum);
}

class MatmulTest : public OpTest {
 protected:
  struct Sizes {
    int64_t tokens;
    int64_t columns;
    int64_t depth;
    bool bias = false;
    int32_t precision = PAVO_PRECISION_DEFAULT;
    int64_t row_gap = 0;
  };

  OpCase make(int32_t type, const Sizes& sizes) {
    OpCase result;
    result.set_params(pavo_op_matmul, pavo_matmul_params{0, sizes.precision});
    result.add_input(activation(
        {sizes.tokens, sizes.depth}, random_.normals(sizes.tokens * sizes.depth), sizes.row_gap));
    result.add_input(weight(
        type,
        {sizes.columns, sizes.depth},
        random_weights(random_, type, sizes.columns * sizes.depth),
        PAVO_USE_MATMUL));
    if (sizes.bias) {
      result.add_input(weight_f32(random_.normals(sizes.columns)));
    }
    result.add_output(output({sizes.tokens, sizes.columns}, sizes.row_gap));
    result.bucket.tokens = static_cast<int32_t>(sizes.tokens);
    return result;
  }

  // int8 activations only where the weights are quantised and the node allows them.
  Arithmetic arithmetic_of(const OpCase& test_case) const {
    const int32_t type = test_case.tensors[1].desc.type;
    const auto params = read_as<pavo_matmul_params>(test_case.params.data());
    if (params.precision == PAVO_PRECISION_EXACT || type == PAVO_TYPE_F32) {
      return Arithmetic::kF32;
    }
    return arithmetic(pavo_type_block_values(type) > 1 ? Arithmetic::kInt8 : Arithmetic::kHalf);
  }

  Expected expect(const OpCase& test_case) const {
    const HostTensor& x = test_case.tensors[0];
    const HostTensor& w = test_case.tensors[1];
    const int64_t tokens = x.desc.shape[0];
    const int64_t depth = x.desc.shape[1];
    const int64_t columns = w.desc.shape[0];
    const bool bias = test_case.inputs.size() > 2;
    std::vector<double> weights(static_cast<size_t>(columns * depth));
    for (int64_t i = 0; i < columns * depth; ++i) {
      weights[static_cast<size_t>(i)] = row_value(w.desc.type, w.bytes.data(), i);
    }
    Expected expected;
    for (int64_t t = 0; t < tokens; ++t) {
      std::vector<double> row;
      for (int64_t k = 0; k < depth; ++k) {
        row.push_back(static_cast<double>(x.at(t * depth + k)));
      }
      for (int64_t n = 0; n < columns; ++n) {
        const double* column = weights.data() + n * depth;
        double sum = bias ? static_cast<double>(test_case.tensors[2].at(n)) : 0.0;
        const double bias_error = chain_tolerance(1, sum);
        for (int64_t k = 0; k < depth; ++k) {
          sum += row[static_cast<size_t>(k)] * column[k];
        }
        expected.add(
            sum,
            bias_error +
                dot_tolerance(
                    arithmetic_of(test_case), depth, norm(row.data(), depth), norm(column, depth)));
      }
    }
    return expected;
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
