#include "kernels/ops/rope.cuh"

#include <cmath>

#include <gtest/gtest.h>

#include "plugins/cpu/rope_frequencies.h"
#include "plugins/cuda-sm61/arch.h"
#include "tests/kernels/ops/emulator/emulator.h"
#include "tests/kernels/ops/node_fixture.h"

namespace pavo::cuda::testing {
namespace {

constexpr int64_t kTokens = 4, kHeads = 6;

pavo_rope_params plain(int32_t mode, int32_t rotary_dims) {
  pavo_rope_params params{};
  params.mode = mode;
  params.rotary_dims = rotary_dims;
  params.theta = 10000.0f;
  params.freq_scale = 1.0f;
  params.magnitude = 1.0f;
  return params;
}

struct RopeCase {
  pavo_rope_params params;
  int64_t dims;
  bool factors;
  Placing placing;
};

void check(const RopeCase& c) {
  std::mt19937 random(5);
  const int64_t pairs = c.params.rotary_dims / 2;
  const bool sections = c.params.mode == PAVO_ROPE_SECTIONS;
  const std::vector<float> x = random_values(kTokens * kHeads * c.dims, random);
  std::vector<int32_t> positions = {0, 17, 131071, 1000000};
  for (int32_t row = 1; sections && row < 4; ++row) {
    positions.insert(positions.end(), {row, 3 * row, 999 * row, 77777 * row});
  }
  std::vector<float> factors(static_cast<size_t>(pairs));
  for (size_t i = 0; i < factors.size(); ++i) {
    factors[i] = 1.0f + 0.125f * static_cast<float>(i % 7);
  }

  NodeFixture node(pavo_op_rope);
  node.params(c.params);
  node.activation({kTokens, kHeads, c.dims}, x, c.placing);
  node.indices(
      sections ? std::vector<int64_t>{4, kTokens} : std::vector<int64_t>{kTokens}, positions);
  if (c.factors) {
    const auto* bytes = reinterpret_cast<const std::byte*>(factors.data());
    node.weight(PAVO_TYPE_F32, PAVO_USE_DENSE, {pairs}, {bytes, bytes + 4 * factors.size()});
  }
  const uint32_t out = node.output({kTokens, kHeads, c.dims}, c.placing);
  ASSERT_EQ(node.run(entry<RopeToken<Sm61>, Sm61>()), "");

  std::vector<double> frequencies(static_cast<size_t>(pairs));
  cpu::rope_frequencies(c.params, c.factors ? factors.data() : nullptr, frequencies.data());
  std::vector<double> expected(x.begin(), x.end());
  for (int64_t row = 0; row < kTokens * kHeads; ++row) {
    for (int64_t i = 0; i < pairs; ++i) {
      const int64_t from = cpu::rope_position_row(c.params, i) * kTokens + row / kHeads;
      const double angle =
          positions[static_cast<size_t>(from)] * frequencies[static_cast<size_t>(i)];
      const bool adjacent = c.params.mode == PAVO_ROPE_NORMAL;
      const auto first = static_cast<size_t>(row * c.dims + (adjacent ? 2 * i : i));
      const size_t second = first + static_cast<size_t>(adjacent ? 1 : pairs);
      const double a = x[first], b = x[second];
      expected[first] = c.params.magnitude * (a * std::cos(angle) - b * std::sin(angle));
      expected[second] = c.params.magnitude * (a * std::sin(angle) + b * std::cos(angle));
    }
  }
  const std::vector<float> got = node.values(out);
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], 3e-6) << "value " << i << " of mode " << c.params.mode;
  }
}

TEST(Rope, EveryModeAtPositionsUpToAMillion) {
  check({plain(PAVO_ROPE_NORMAL, 64), 64, false, {0, 0}});
  check({plain(PAVO_ROPE_NEOX, 64), 80, true, {3, 1}});
  check({plain(PAVO_ROPE_NORMAL, 2), 5, false, {0, 0}});
  check({plain(PAVO_ROPE_NEOX, 300), 300, true, {0, 0}});  // more pairs than threads
  pavo_rope_params sections = plain(PAVO_ROPE_SECTIONS, 64);
  sections.section_0 = 8, sections.section_1 = 12, sections.section_2 = 12;
  check({sections, 64, false, {0, 0}});
  sections.section_2 = 0, sections.section_3 = 12;
  check({sections, 64, true, {0, 0}});
}

TEST(Rope, YarnBlendsAndScales) {
  pavo_rope_params yarn = plain(PAVO_ROPE_NEOX, 64);
  yarn.freq_scale = 0.25f;
  yarn.ext_factor = 1.0f;
  yarn.beta_fast = 32.0f;
  yarn.beta_slow = 1.0f;
  yarn.original_context = 4096;
  yarn.magnitude = 1.1386f;
  check({yarn, 64, false, {0, 0}});
  yarn.ext_factor = 0.5f;
  yarn.beta_fast = yarn.beta_slow;  // no ramp between
  check({yarn, 64, true, {0, 0}});
}

TEST(RopePredicate, RefusesWhatTheOpDoesNotAllow) {
  const auto refusal = [](const pavo_rope_params& params) {
    NodeFixture node(pavo_op_rope);
    node.params(params);
    node.activation({1, 1, 8}, std::vector<float>(8));
    node.indices(
        params.mode == PAVO_ROPE_SECTIONS ? std::vector<int64_t>{4, 1} : std::vector<int64_t>{1},
        std::vector<int32_t>(params.mode == PAVO_ROPE_SECTIONS ? 4 : 1));
    node.output({1, 1, 8});
    return node.run(entry<RopeToken<Sm61>, Sm61>());
  };
  EXPECT_EQ(refusal(plain(PAVO_ROPE_NEOX, 8)), "");
  EXPECT_NE(refusal(plain(PAVO_ROPE_NEOX, 7)), "");
  EXPECT_NE(refusal(plain(PAVO_ROPE_NEOX, 10)), "");
  EXPECT_NE(refusal(plain(3, 8)), "");
  EXPECT_NE(refusal(plain(PAVO_ROPE_SECTIONS, 8)), "");  // sections add up to 0
  pavo_rope_params yarn = plain(PAVO_ROPE_NEOX, 8);
  yarn.ext_factor = 1.0f;
  EXPECT_NE(refusal(yarn), "");  // no betas
}

}  // namespace
}  // namespace pavo::cuda::testing
