#include "tests/ops/matmul_case.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "tests/ops/family.h"
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

std::vector<Family> matmul_families() {
  std::vector<Family> families;
  for (const int32_t type : kWeightTypes) {
    const auto block = static_cast<int64_t>(pavo_type_block_values(type));
    for (const int bits : {0, 1, 2, 7}) {
      MatmulSizes form = {};
      form.bias = (bits & 1) != 0;
      form.precision = (bits & 2) != 0 ? PAVO_PRECISION_EXACT : PAVO_PRECISION_DEFAULT;
      form.row_gap = (bits & 4) != 0 ? kFamilyGap : 0;
      families.push_back(
          {type_text(type) + (form.bias ? ", bias" : "") +
               (form.precision == PAVO_PRECISION_EXACT ? ", exact" : "") +
               (form.row_gap > 0 ? ", gaps" : ""),
           {{"T", 3, 130, 1, 0},
            {"N", 37, 260},
            {"K", std::max<int64_t>(block, 64), 1100, block, 0}},
           [type, form](Random& random, const Sizes& s) {
             MatmulSizes sizes = form;
             sizes.tokens = s[0];
             sizes.columns = s[1];
             sizes.depth = s[2];
             OpCase test_case = make_matmul(random, type, sizes);
             test_case.weight_shift = s[1] % 2;
             return test_case;
           },
           judge_by([](const OpCase& test_case) {
             return std::vector<Expected>{expect_matmul(test_case, matmul_arithmetic(test_case))};
           }),
           {}});
    }
  }
  return families;
}

}  // namespace pavo::test
