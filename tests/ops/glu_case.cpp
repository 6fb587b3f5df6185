#include "tests/ops/glu_case.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "tests/ops/family.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

double activate(int32_t kind, double x) {
  if (kind == PAVO_GLU_GELU_ERF) {
    return 0.5 * x * std::erfc(-x / std::numbers::sqrt2);
  }
  // tanh(z) = 2 sigmoid(2 z) - 1, so gelu's approximation is x * sigmoid(2 z).
  const double z = kind == PAVO_GLU_GELU_TANH
                       ? 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * std::pow(x, 3))
                       : x;
  return x / (1 + std::exp(-z));
}

}  // namespace

OpCase make_glu(Random& random, const Shape& shape, const GluForm& form) {
  OpCase result;
  result.set_params(pavo_op_glu, pavo_glu_params{0, form.kind, 1.702F, 3.0F});
  int64_t count = 1;
  for (const int64_t size : shape) {
    count *= size;
  }
  if (form.packed) {
    Shape wide = shape;
    wide.back() *= 2;
    result.add_input(activation(wide, random.normals(2 * count, form.deviation), form.row_gap));
  } else {
    result.add_input(activation(shape, random.normals(count, form.deviation), form.row_gap));
    result.add_input(activation(shape, random.normals(count, form.deviation), form.row_gap));
  }
  result.add_output(output(shape, form.row_gap));
  return result;
}

Expected expect_glu(const OpCase& test_case) {
  const auto p = read_as<pavo_glu_params>(test_case.params.data());
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
        value, chain_tolerance(16, std::fabs(value)) + chain_tolerance(4, 1e-2 * std::fabs(g * u)));
  }
  return expected;
}

std::vector<Family> glu_families() {
  std::vector<Family> families;
  const std::pair<int32_t, const char*> kinds[] = {
      {PAVO_GLU_SILU, "silu"},
      {PAVO_GLU_GELU_TANH, "gelu_tanh"},
      {PAVO_GLU_GELU_ERF, "gelu_erf"},
      {PAVO_GLU_CLAMPED, "clamped"}};
  for (const auto& [kind, name] : kinds) {
    for (const bool packed : {false, true}) {
      for (const int64_t gap : {int64_t{0}, kFamilyGap}) {
        const GluForm form = {kind, packed, gap};
        families.push_back(
            {std::string(name) + (packed ? ", packed" : "") + (gap > 0 ? ", gaps" : ""),
             {{"T", 3, 200, 1, 0}, {"N", 70, 1100}},
             [form](Random& random, const Sizes& s) {
               return make_glu(random, {s[0], s[1]}, form);
             },
             judge_by(one(expect_glu)),
             {}});
      }
    }
  }
  return families;
}

}  // namespace pavo::test
