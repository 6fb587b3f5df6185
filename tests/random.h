// Random test inputs that can be had again: the seed is printed with every failure.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace pavo::test {

// PAVO_TEST_SEED, or a fixed one.
inline uint64_t test_seed() {
  const char* text = std::getenv("PAVO_TEST_SEED");
  return text != nullptr ? std::strtoull(text, nullptr, 10) : 20261130;
}

class Random {
 public:
  explicit Random(uint64_t seed = test_seed()) : seed_(seed), engine_(seed) {}

  uint64_t seed() const { return seed_; }

  // Inclusive bounds.
  int64_t integer(int64_t least, int64_t most) {
    return std::uniform_int_distribution<int64_t>(least, most)(engine_);
  }

  float normal(float deviation = 1.0F) {
    return std::normal_distribution<float>(0.0F, deviation)(engine_);
  }

  std::vector<float> normals(int64_t count, float deviation = 1.0F) {
    std::normal_distribution<float> distribution(0.0F, deviation);  // makes two at a time
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) {
      value = distribution(engine_);
    }
    return values;
  }

  std::vector<std::byte> bytes(int64_t count) {
    std::vector<std::byte> values(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); i += sizeof(uint64_t)) {
      const uint64_t eight = engine_();
      std::memcpy(values.data() + i, &eight, std::min(sizeof eight, values.size() - i));
    }
    return values;
  }

 private:
  uint64_t seed_;
  std::mt19937_64 engine_;
};

}  // namespace pavo::test
