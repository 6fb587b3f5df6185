#include "tests/ops/norm_case.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/ops/family.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

double optional(const OpCase& test_case, size_t input, int64_t index, double fallback) {
  if (input >= test_case.inputs.size() || test_case.inputs[input] == PAVO_NO_TENSOR) {
    return fallback;
  }
  const HostTensor& tensor = test_case.tensors[test_case.inputs[input]];
  return tensor.desc.role == PAVO_ROLE_WEIGHT
             ? row_value(tensor.desc.type, tensor.bytes.data(), index)
             : static_cast<double>(tensor.at(index));
}

}  // namespace

OpCase make_norm(Random& random, const Shape& shape, const NormForm& form) {
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
          random_weights(random, form.weight_type, length),
          PAVO_USE_DENSE));
    } else {
      result.skip_input();
    }
  };
  result.add_input(activation(shape, random.normals(count, 3), form.row_gap));
  add_weight(form.weight);
  add_weight(form.bias);
  if (form.residual) {
    result.add_input(activation(shape, random.normals(count), form.row_gap));
  }
  result.add_output(output(shape, form.row_gap));
  if (form.sum) {
    result.add_output(output(shape, form.row_gap));
  }
  result.weight_shift = length % 2;
  return result;
}

std::vector<Expected> expect_norm(const OpCase& test_case) {
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

std::vector<Family> norm_families() {
  std::vector<Family> families;
  for (const int32_t kind : {PAVO_NORM_RMS, PAVO_NORM_LAYER, PAVO_NORM_L2}) {
    for (int bits = 0; bits < 16; ++bits) {
      NormForm form;
      form.kind = kind;
      form.weight = (bits & 1) != 0;
      form.bias = (bits & 2) != 0;
      form.residual = (bits & 4) != 0;
      form.sum = (bits & 8) != 0;
      form.weight_offset = form.weight && form.bias ? 1.0F : 0.0F;
      form.row_gap = bits == 13 ? kFamilyGap : 0;
      form.weight_type = bits == 5 ? PAVO_TYPE_F16 : bits == 7 ? PAVO_TYPE_BF16 : PAVO_TYPE_F32;
      const char* kinds[] = {"rms", "layer", "l2"};
      families.push_back(
          {std::string(kinds[kind]) +
               (form.weight ? ", weight " + type_text(form.weight_type) : "") +
               (form.bias ? ", bias" : "") + (form.residual ? ", residual" : "") +
               (form.sum ? ", sum" : "") + (form.row_gap > 0 ? ", gaps" : ""),
           {{"T", 3, 200, 1, 0}, {"N", 70, 1100}},
           [form](Random& random, const Sizes& s) {
             return make_norm(random, {s[0], s[1]}, form);
           },
           judge_by(expect_norm),
           {}});
    }
  }
  return families;
}

}  // namespace pavo::test
