#include "plugins/cpu/rope_frequencies.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace pavo::cpu {
namespace {

// The pair (as a real number) that turns `turns` times over the original context.
double pair_of_turns(const pavo_rope_params& params, double turns) {
  const double context = params.original_context;
  return params.rotary_dims * std::log(context / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(static_cast<double>(params.theta)));
}

// Share of the unscaled frequency in yarn's blend: 1 below the pair that turns beta_fast times, 0
// above the one that turns beta_slow times, linear between the whole pairs around them.
struct YarnRamp {
  YarnRamp(double first, double last) : low(first), high(last) {}
  explicit YarnRamp(const pavo_rope_params& params)
      : low(std::max(0.0, std::floor(pair_of_turns(params, params.beta_fast)))),
        high(std::min<double>(
            params.rotary_dims - 1, std::ceil(pair_of_turns(params, params.beta_slow)))) {}

  double operator()(int64_t pair) const {
    const double width = std::max(0.001, high - low);
    return 1 - std::clamp((static_cast<double>(pair) - low) / width, 0.0, 1.0);
  }

  double low;
  double high;
};

}  // namespace

bool check_rope_params(const NodeQuery& query, Checker* check, pavo_verdict* verdict) {
  const auto& params = query.params<pavo_rope_params>();
  const int64_t head = query.input(0)->shape[2];
  constexpr auto kDims = offsetof(pavo_rope_params, rotary_dims);
  if (!check->param_range(kDims, "rotary_dims", params.rotary_dims, 2, head)) {
    return false;
  }
  if (params.rotary_dims % 2 != 0) {
    return sdk::refuse(
        verdict,
        PAVO_REASON_PARAM,
        -1,
        static_cast<int32_t>(kDims),
        2,
        params.rotary_dims,
        "expected an even rotary_dims, got %d",
        params.rotary_dims);
  }
  const bool finite =
      check->param_finite(offsetof(pavo_rope_params, theta), "theta", params.theta) &&
      check->param_finite(
          offsetof(pavo_rope_params, freq_scale), "freq_scale", params.freq_scale) &&
      check->param_finite(
          offsetof(pavo_rope_params, ext_factor), "ext_factor", params.ext_factor) &&
      check->param_finite(offsetof(pavo_rope_params, magnitude), "magnitude", params.magnitude);
  if (!finite) {
    return false;
  }
  if (params.theta <= 0.0F) {
    return sdk::refuse(
        verdict,
        PAVO_REASON_PARAM,
        -1,
        offsetof(pavo_rope_params, theta),
        1,
        0,
        "expected a positive theta, got %g",
        static_cast<double>(params.theta));
  }
  if (params.ext_factor != 0.0F &&
      !(params.theta > 1.0F && std::isfinite(params.beta_fast) && std::isfinite(params.beta_slow) &&
        params.beta_fast > 0.0F && params.beta_slow > 0.0F && params.original_context > 0)) {
    return sdk::refuse(
        verdict,
        PAVO_REASON_PARAM,
        -1,
        offsetof(pavo_rope_params, ext_factor),
        1,
        0,
        "yarn wants theta > 1 and positive beta_fast, beta_slow, original_context");
  }
  if (params.mode != PAVO_ROPE_SECTIONS) {
    return true;
  }
  const int32_t sections[] = {
      params.section_0, params.section_1, params.section_2, params.section_3};
  int64_t sum = 0;
  for (const int32_t section : sections) {
    if (!check->param_range(offsetof(pavo_rope_params, section_0), "section", section, 0, head)) {
      return false;
    }
    sum += section;
  }
  return sum == params.rotary_dims / 2 || sdk::refuse(
                                              verdict,
                                              PAVO_REASON_PARAM,
                                              -1,
                                              offsetof(pavo_rope_params, section_0),
                                              params.rotary_dims / 2,
                                              sum,
                                              "expected sections that add up to %d, got %d",
                                              params.rotary_dims / 2,
                                              static_cast<int>(sum));
}

void rope_frequencies(const pavo_rope_params& params, const float* factors, double* out) {
  const auto scale = static_cast<double>(params.freq_scale);
  const bool yarn = params.ext_factor != 0.0F;
  const YarnRamp ramp = yarn ? YarnRamp(params) : YarnRamp{0, 0};
  // A power for each pair would cost more than the rotation of a token.
  const double ratio = std::pow(static_cast<double>(params.theta), -2.0 / params.rotary_dims);
  double frequency = 1.0;
  for (int64_t i = 0; i < params.rotary_dims / 2; ++i, frequency *= ratio) {
    const double own = factors != nullptr ? frequency / static_cast<double>(factors[i]) : frequency;
    const double unscaled = yarn ? ramp(i) * static_cast<double>(params.ext_factor) : 0.0;
    out[i] = own * (scale * (1 - unscaled) + unscaled);
  }
}

int64_t rope_position_row(const pavo_rope_params& params, int64_t pair) {
  if (params.mode != PAVO_ROPE_SECTIONS) {
    return 0;
  }
  int64_t row = 0;
  int64_t end = params.section_0;
  for (const int32_t section : {params.section_1, params.section_2, params.section_3}) {
    if (pair < end) {
      break;
    }
    ++row;
    end += section;
  }
  return row;
}

}  // namespace pavo::cpu
