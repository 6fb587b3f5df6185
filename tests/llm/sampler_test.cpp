#include "llm/sampler.h"

#include <cmath>
#include <limits>
#include <map>

#include <gtest/gtest.h>

namespace pavo::llm {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(Sampler, GreedyTakesTheLowestOfEqualsAndNeverNan) {
  const std::vector<float> logits = {kNan, 1.0f, 3.0f, 3.0f, -1.0f};
  EXPECT_EQ(argmax(logits), 2);
  EXPECT_EQ(Sampler({}).sample(logits), 2);
  const std::vector<float> none = {kNan, kNan};
  EXPECT_EQ(Sampler({}).sample(none), -1);
  EXPECT_EQ(Sampler({.temperature = 1.0}).sample(none), -1);
  EXPECT_EQ(argmax({}), -1);
}

TEST(Sampler, SameSeedSameTokens) {
  std::vector<float> logits;
  for (int i = 0; i < 100; ++i) {
    logits.push_back(static_cast<float>(std::sin(i)));
  }
  Sampler a({.temperature = 1.0, .seed = 42});
  Sampler b({.temperature = 1.0, .seed = 42});
  Sampler c({.temperature = 1.0, .seed = 43});
  int differing = 0;
  for (int i = 0; i < 50; ++i) {
    const int32_t token = a.sample(logits);
    EXPECT_EQ(token, b.sample(logits));
    differing += token != c.sample(logits) ? 1 : 0;
  }
  EXPECT_GT(differing, 10);
}

// Frequencies against the softmax that the logits define, within five standard deviations.
TEST(Sampler, FollowsTheDistribution) {
  const std::vector<float> logits = {0.0f, 1.0f, 2.0f, -1.0f};
  const double temperature = 0.7;
  double total = 0;
  for (const float logit : logits) {
    total += std::exp(logit / temperature);
  }
  Sampler sampler({.temperature = temperature, .seed = 1});
  constexpr int kDraws = 20000;
  std::map<int32_t, int> counts;
  for (int i = 0; i < kDraws; ++i) {
    ++counts[sampler.sample(logits)];
  }
  for (int32_t token = 0; token < 4; ++token) {
    const double p = std::exp(logits[static_cast<size_t>(token)] / temperature) / total;
    const double sigma = std::sqrt(kDraws * p * (1 - p));
    EXPECT_NEAR(counts[token], kDraws * p, 5 * sigma) << token;
  }
}

TEST(Sampler, FiltersKeepOnlyWhatTheySay) {
  const std::vector<float> logits = {0.0f, 5.0f, 4.0f, 3.0f, -2.0f};
  Sampler top_k({.temperature = 5.0, .top_k = 2, .seed = 3});
  Sampler top_p({.temperature = 1.0, .top_p = 0.6, .seed = 3});
  Sampler min_p({.temperature = 1.0, .min_p = 0.3, .seed = 3});
  for (int i = 0; i < 500; ++i) {
    const int32_t token = top_k.sample(logits);
    EXPECT_TRUE(token == 1 || token == 2) << token;
    EXPECT_EQ(top_p.sample(logits), 1);           // its probability alone is 0.66
    const int32_t likely = min_p.sample(logits);  // e^-1 = 0.37 passes, e^-2 does not
    EXPECT_TRUE(likely == 1 || likely == 2) << likely;
  }
}

}  // namespace
}  // namespace pavo::llm
