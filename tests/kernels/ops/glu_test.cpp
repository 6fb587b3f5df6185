#include "kernels/ops/glu.cuh"

#include <gtest/gtest.h>

#include "plugins/cuda-sm60/arch.h"
#include "tests/kernels/ops/emulator/emulator.h"
#include "tests/kernels/ops/node_fixture.h"

namespace pavo::cuda::testing {
namespace {

constexpr double kAlpha = 1.702;
constexpr double kLimit = 0.75;

double expected(int32_t kind, double gate, double up) {
  switch (kind) {
    case PAVO_GLU_SILU:
      return gate / (1 + std::exp(-gate)) * up;
    case PAVO_GLU_GELU_TANH:
      return 0.5 * gate *
             (1 + std::tanh(std::sqrt(2 / M_PI) * (gate + 0.044715 * gate * gate * gate))) * up;
    case PAVO_GLU_GELU_ERF:
      return 0.5 * gate * (1 + std::erf(gate / std::sqrt(2.0))) * up;
    default:
      gate = std::min(gate, kLimit);
      return gate / (1 + std::exp(-kAlpha * gate)) * (std::clamp(up, -kLimit, kLimit) + 1);
  }
}

struct GluCase {
  int32_t kind;
  bool two_operands;
  int64_t columns;
  Placing placing;
};

void check(const GluCase& c, const Kernel& kernel, const char* variant) {
  std::mt19937 random(3);
  const int64_t rows = 3;
  std::vector<float> gate = random_values(rows * c.columns, random);
  std::vector<float> up = random_values(rows * c.columns, random);
  gate[0] = -90.0f;
  gate[1] = 90.0f;
  NodeFixture node(pavo_op_glu);
  node.params(pavo_glu_params{0, c.kind, static_cast<float>(kAlpha), static_cast<float>(kLimit)});
  if (c.two_operands) {
    node.activation({rows, c.columns}, gate, c.placing);
    node.activation({rows, c.columns}, up, c.placing);
  } else {
    std::vector<float> both;
    for (int64_t row = 0; row < rows; ++row) {
      const auto take = [&](const std::vector<float>& from) {
        const auto begin = from.begin() + row * c.columns;
        both.insert(both.end(), begin, begin + c.columns);
      };
      take(gate);
      take(up);
    }
    node.activation({rows, 2 * c.columns}, both, c.placing);
  }
  const uint32_t out = node.output({rows, c.columns}, c.placing);
  std::vector<std::string> launched;
  ASSERT_EQ(node.run(kernel, &launched), "");
  EXPECT_EQ(launched, std::vector<std::string>{variant});
  const std::vector<float> got = node.values(out);
  for (size_t i = 0; i < got.size(); ++i) {
    const double want = expected(c.kind, gate[i], up[i]);
    EXPECT_NEAR(got[i], want, 1e-6 * std::abs(want) + 1e-7)
        << "kind " << c.kind << ", gate " << gate[i] << ", up " << up[i];
  }
}

TEST(Glu, EveryKindFormAndLayout) {
  for (int32_t kind = PAVO_GLU_SILU; kind <= PAVO_GLU_CLAMPED; ++kind) {
    for (const bool two : {true, false}) {
      check({kind, two, 36, {4, 4}}, entry<GluRows<Sm60>, Sm60>(), "glu_rows");
      check({kind, two, 36, {0, 1}}, entry<GluRows<Sm60>, Sm60>(), "glu_generic");
      check({kind, two, 37, {2, 1}}, entry<GluGeneric<Sm60>, Sm60>(), "glu_generic");
    }
  }
}

}  // namespace
}  // namespace pavo::cuda::testing
