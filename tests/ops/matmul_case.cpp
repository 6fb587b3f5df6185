#include "tests/ops/matmul_case.h"

#include <cmath>

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

}  // namespace

OpCase make_matmul(Random& random, int32_t type, const MatmulSizes& sizes) {
  OpCase result;
  result.set_params(pavo_op_matmul, pavo_matmul_params{0, sizes.precision});
  result.add_input(activation(
      {sizes.tokens, sizes.depth}, random.normals(sizes.tokens * sizes.depth), sizes.row_gap));
  result.add_input(weight(
      type,
      {sizes.columns, sizes.depth},
      random_weights(random, type, sizes.columns * sizes.depth),
      PAVO_USE_MATMUL));
  if (sizes.bias) {
    result.add_input(weight_f32(random.normals(sizes.columns)));
  }
  result.add_output(output({sizes.tokens, sizes.columns}, sizes.row_gap));
  result.bucket.tokens = static_cast<int32_t>(sizes.tokens);
  return result;
}

Arithmetic matmul_arithmetic(const OpCase& test_case) {
  const int32_t type = test_case.tensors[1].desc.type;
  const auto params = read_as<pavo_matmul_params>(test_case.params.data());
  if (params.precision == PAVO_PRECISION_EXACT || type == PAVO_TYPE_F32) {
    return Arithmetic::kF32;
  }
  return pavo_type_block_values(type) > 1 ? Arithmetic::kInt8 : Arithmetic::kHalf;
}

Expected expect_matmul(const OpCase& test_case, Arithmetic arithmetic) {
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
              dot_tolerance(arithmetic, depth, norm(row.data(), depth), norm(column, depth)));
    }
  }
  return expected;
}

}  // namespace pavo::test
