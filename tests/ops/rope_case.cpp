#include "tests/ops/rope_case.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include "tests/ops/family.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

// Yarn as the paper's code has it: a linear ramp over pair numbers.
double frequency(const pavo_rope_params& p, double factor, int64_t i) {
  const double base =
      std::pow(static_cast<double>(p.theta), -2.0 * static_cast<double>(i) / p.rotary_dims) /
      factor;
  if (p.ext_factor == 0.0F) {
    return base * static_cast<double>(p.freq_scale);
  }
  const auto turns_at = [&](double turns) {
    return p.rotary_dims * std::log(p.original_context / (2 * std::numbers::pi * turns)) /
           (2 * std::log(static_cast<double>(p.theta)));
  };
  const double low = std::max(std::floor(turns_at(static_cast<double>(p.beta_fast))), 0.0);
  const double high = std::min(
      std::ceil(turns_at(static_cast<double>(p.beta_slow))),
      static_cast<double>(p.rotary_dims - 1));
  const double at = (static_cast<double>(i) - low) / std::max(high - low, 0.001);
  const double unscaled =
      (1 - std::min(1.0, std::max(0.0, at))) * static_cast<double>(p.ext_factor);
  return base * unscaled + base * static_cast<double>(p.freq_scale) * (1 - unscaled);
}

int32_t position(const OpCase& test_case, const pavo_rope_params& p, int64_t t, int64_t pair) {
  int64_t row = 0;
  if (p.mode == PAVO_ROPE_SECTIONS) {
    const int32_t ends[] = {
        p.section_0, p.section_0 + p.section_1, p.section_0 + p.section_1 + p.section_2};
    row = (pair >= ends[0] ? 1 : 0) + (pair >= ends[1] ? 1 : 0) + (pair >= ends[2] ? 1 : 0);
  }
  const HostTensor& positions = test_case.tensors[1];
  const int64_t tokens = test_case.tensors[0].desc.shape[0];
  return read_as<int32_t>(positions.bytes.data() + positions.offset(row * tokens + t));
}

}  // namespace

pavo_rope_params rope_params(int32_t mode, int32_t rotary_dims) {
  pavo_rope_params params{};
  params.mode = mode;
  params.rotary_dims = rotary_dims;
  params.theta = 10000.0F;
  params.freq_scale = 1.0F;
  params.magnitude = 1.0F;
  return params;
}

OpCase make_rope(
    Random& random,
    const Shape& shape,
    const pavo_rope_params& params,
    int32_t position_step,
    bool factors,
    int64_t row_gap) {
  OpCase result;
  result.set_params(pavo_op_rope, params);
  result.add_input(activation(shape, random.normals(shape[0] * shape[1] * shape[2]), row_gap));
  const int64_t rows = params.mode == PAVO_ROPE_SECTIONS ? 4 : 1;
  std::vector<int32_t> positions(static_cast<size_t>(rows * shape[0]));
  for (size_t i = 0; i < positions.size(); ++i) {
    positions[i] = static_cast<int32_t>(static_cast<int64_t>(i) * position_step % 200'000);
  }
  result.add_input(rows == 1 ? step({shape[0]}, positions) : step({4, shape[0]}, positions));
  if (factors) {
    std::vector<float> values = random.normals(params.rotary_dims / 2);
    for (float& value : values) {
      value = 1.0F + std::fabs(value);
    }
    result.add_input(weight_f32(values));
  }
  result.add_output(output(shape, row_gap));
  return result;
}

Expected expect_rope(const OpCase& test_case) {
  const HostTensor& x = test_case.tensors[0];
  const auto p = read_as<pavo_rope_params>(test_case.params.data());
  const int64_t heads = x.desc.shape[1];
  const int64_t dims = x.desc.shape[2];
  const int64_t pairs = p.rotary_dims / 2;
  Expected expected;
  for (int64_t i = 0; i < x.elements(); ++i) {
    const int64_t d = i % dims;
    if (d >= p.rotary_dims) {
      expected.add(static_cast<double>(x.at(i)), 0);
      continue;
    }
    const bool adjacent = p.mode == PAVO_ROPE_NORMAL;
    const int64_t pair = adjacent ? d / 2 : d % pairs;
    const bool first = adjacent ? d % 2 == 0 : d < pairs;
    const int64_t distance = adjacent ? 1 : pairs;
    const auto self = static_cast<double>(x.at(i));
    const auto other = static_cast<double>(x.at(first ? i + distance : i - distance));
    const double factor =
        test_case.inputs.size() > 2 ? static_cast<double>(test_case.tensors[2].at(pair)) : 1.0;
    const double angle =
        frequency(p, factor, pair) * position(test_case, p, i / dims / heads, pair);
    const double sine = std::sin(angle) * (first ? -1 : 1);
    const auto magnitude = static_cast<double>(p.magnitude);
    expected.add(
        (self * std::cos(angle) + other * sine) * magnitude,
        chain_tolerance(6, (std::fabs(self) + std::fabs(other)) * magnitude));
  }
  return expected;
}

std::vector<Family> rope_families() {
  std::vector<Family> families;
  const auto add =
      [&](const std::string& name, pavo_rope_params params, bool factors, int64_t gap) {
        // The rotated part is the whole head, rounded down to pairs, unless it is fixed.
        const bool whole = params.rotary_dims == 0;
        families.push_back(
            {name,
             {{"T", 3, 150, 1, 0},
              {"H", 2, 33},
              {"D", 64, 256, whole ? 2 : 1, whole ? 2 : params.rotary_dims}},
             [params, factors, gap, whole](Random& random, const Sizes& s) {
               pavo_rope_params p = params;
               p.rotary_dims = whole ? static_cast<int32_t>(s[2]) : p.rotary_dims;
               return make_rope(random, {s[0], s[1], s[2]}, p, 37, factors, gap);
             },
             judge_by(one(expect_rope)),
             {}});
      };
  for (const int32_t mode : {PAVO_ROPE_NORMAL, PAVO_ROPE_NEOX}) {
    const std::string name = mode == PAVO_ROPE_NORMAL ? "normal" : "neox";
    pavo_rope_params p = rope_params(mode, 0);
    add(name, p, false, 0);
    add(name + ", gaps", p, false, kFamilyGap);
    p.rotary_dims = 32;
    add(name + ", partial", p, false, 0);
    p.freq_scale = 0.25F;
    add(name + ", scaled, factors", p, true, 0);
    p.ext_factor = 1.0F;
    p.beta_fast = 32.0F;
    p.beta_slow = 1.0F;
    p.original_context = 4096;
    p.magnitude = 1.1386F;
    add(name + ", yarn", p, false, 0);
  }
  pavo_rope_params sections = rope_params(PAVO_ROPE_SECTIONS, 48);
  sections.section_0 = 8;
  sections.section_1 = 12;
  sections.section_2 = 4;
  add("sections", sections, false, 0);
  return families;
}

}  // namespace pavo::test
