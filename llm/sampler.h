// Logits to a token, seeded and reproducible: the same logits and seed give the same tokens on
// every machine and standard library.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pavo::llm {

struct SamplerOptions {
  double temperature = 0;  // 0: the most likely token
  int32_t top_k = 0;       // keep the k most likely; 0: all
  double top_p = 1;        // keep the fewest tokens whose probabilities reach p
  double min_p = 0;        // drop tokens below p times the most likely one
  uint64_t seed = 0;
};

// Index of the largest value, the lowest among equals; NaN never wins. -1 if there is none.
int32_t argmax(std::span<const float> logits);

// Not thread-safe.
class Sampler {
 public:
  explicit Sampler(const SamplerOptions& options);
  // -1 if every logit is NaN or the span is empty.
  int32_t sample(std::span<const float> logits);

 private:
  double uniform();  // in [0, 1)

  struct Candidate {
    int32_t token;
    float logit;
    double weight;
  };

  SamplerOptions options_;
  uint64_t state_;
  std::vector<Candidate> candidates_;
};

}  // namespace pavo::llm
