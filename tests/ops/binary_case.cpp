#include "tests/ops/binary_case.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/ops/family.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

int64_t count(const Shape& shape) {
  int64_t product = 1;
  for (const int64_t size : shape) {
    product *= size;
  }
  return product;
}

double b_value(const HostTensor& b, int64_t index) {
  if (b.desc.role != PAVO_ROLE_WEIGHT) {
    return static_cast<double>(b.at(index));
  }
  return row_value(b.desc.type, b.bytes.data(), index);
}

}  // namespace

HostTensor random_activation(Random& random, const Shape& shape, int64_t row_gap) {
  return activation(shape, random.normals(count(shape)), row_gap);
}

OpCase make_binary(Random& random, int32_t kind, const Shape& a, HostTensor b, int64_t row_gap) {
  OpCase result;
  result.set_params(pavo_op_binary, pavo_binary_params{0, kind});
  result.add_input(activation(a, random.normals(count(a)), row_gap));
  result.add_input(std::move(b));
  result.add_output(output(a, row_gap));
  return result;
}

Expected expect_binary(const OpCase& test_case) {
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

std::vector<Family> binary_families() {
  std::vector<Family> families;
  const std::pair<int32_t, const char*> kinds[] = {
      {PAVO_BINARY_ADD, "add"}, {PAVO_BINARY_SUB, "sub"}, {PAVO_BINARY_MUL, "mul"}};
  const std::pair<int, const char*> shapes[] = {
      {0, "same shape"}, {1, "row"}, {2, "column"}, {3, "weight"}};
  for (const auto& [kind, kind_name] : kinds) {
    for (const auto& [shape, shape_name] : shapes) {
      for (const int64_t gap : {int64_t{0}, kFamilyGap}) {
        families.push_back(
            {std::string(kind_name) + ", " + shape_name + (gap > 0 ? ", gaps" : ""),
             {{"T", 3, 200, 1, 0}, {"N", 70, 1100}},
             [kind = kind, shape = shape, gap](Random& random, const Sizes& s) {
               HostTensor b = shape == 0   ? random_activation(random, {s[0], s[1]}, gap)
                              : shape == 1 ? random_activation(random, {s[1]})
                              : shape == 2 ? random_activation(random, {s[0], 1})
                                           : weight_f32(random.normals(s[1]));
               return make_binary(random, kind, {s[0], s[1]}, std::move(b), gap);
             },
             judge_by(one(expect_binary)),
             {}});
      }
    }
  }
  return families;
}

}  // namespace pavo::test
