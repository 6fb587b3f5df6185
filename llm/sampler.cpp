#include "llm/sampler.h"

#include <algorithm>
#include <cmath>

namespace pavo::llm {

int32_t argmax(std::span<const float> logits) {
  int32_t best = -1;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!std::isnan(logits[i]) && (best < 0 || logits[i] > logits[static_cast<size_t>(best)])) {
      best = static_cast<int32_t>(i);
    }
  }
  return best;
}

Sampler::Sampler(const SamplerOptions& options) : options_(options), state_(options.seed) {}

// splitmix64 (Steele, Lea, Flood 2014): small, and any seed is a good one.
double Sampler::uniform() {
  state_ += 0x9e3779b97f4a7c15u;
  uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1.0p-53;
}

int32_t Sampler::sample(std::span<const float> logits) {
  const int32_t best = argmax(logits);
  if (best < 0 || options_.temperature <= 0) {
    return best;
  }
  const double largest = logits[static_cast<size_t>(best)];
  if (!std::isfinite(largest)) {
    return best;
  }
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i])) {
      continue;
    }
    const double weight = std::exp((logits[i] - largest) / options_.temperature);
    if (weight >= options_.min_p) {
      candidates_.push_back({static_cast<int32_t>(i), logits[i], weight});
    }
  }
  // Ties are broken by token, so that the order does not depend on the sort.
  const auto more_likely = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  const auto top_k = static_cast<size_t>(options_.top_k);
  if (options_.top_k > 0 && top_k < candidates_.size()) {
    const auto end = candidates_.begin() + options_.top_k;
    std::partial_sort(candidates_.begin(), end, candidates_.end(), more_likely);
    candidates_.erase(end, candidates_.end());
  } else if (options_.top_p < 1) {
    std::sort(candidates_.begin(), candidates_.end(), more_likely);
  }
  double total = 0;
  for (const Candidate& candidate : candidates_) {
    total += candidate.weight;
  }
  if (options_.top_p < 1) {
    const double wanted = options_.top_p * total;
    double kept = 0;
    size_t count = 0;
    while (count < candidates_.size() && (count == 0 || kept < wanted)) {
      kept += candidates_[count++].weight;
    }
    candidates_.resize(count);
    total = kept;
  }
  double rest = uniform() * total;
  for (const Candidate& candidate : candidates_) {
    rest -= candidate.weight;
    if (rest < 0) {
      return candidate.token;
    }
  }
  return candidates_.back().token;
}

}  // namespace pavo::llm
