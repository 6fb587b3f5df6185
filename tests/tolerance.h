// The one place where numeric tolerances come from: element type of the inner arithmetic, number of
// terms, norms of the inputs. All of them suppose inputs with random, independent signs, as tests
// draw them; then rounding errors add up like a random walk.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pavo::test {

// What an op's inner products are made in. Sums are f32 at least.
enum class Arithmetic {
  kF32,
  kHalf,  // half2, tensor cores
  kInt8,  // activations as int8 blocks of 32
};

inline constexpr double kF32Roundoff = 0x1p-24;

// The widest of the millions of values that a test run compares lies within this many standard
// deviations.
inline constexpr double kDeviations = 8;

// Root mean square of the relative error of one factor of a product.
inline double factor_error(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::kHalf:
      return 0x1p-11;
    case Arithmetic::kInt8:
      // A step of amax / 127 leaves amax / 440; amax is about 2.1 times the root mean square of 32
      // normal values.
      return 2.1 / 440;
    default:
      return kF32Roundoff;
  }
}

// A dot product of `terms` values of vectors with these Euclidean norms.
inline double dot_tolerance(Arithmetic arithmetic, int64_t terms, double norm_a, double norm_b) {
  const double root = std::sqrt(static_cast<double>(std::max<int64_t>(terms, 1)));
  return (4 * kF32Roundoff + kDeviations * factor_error(arithmetic) / root) * norm_a * norm_b +
         0x1p-149;
}

// A chain of `operations` f32 operations whose results, intermediate ones included, are at most
// `magnitude`. 1: the nearest f32.
inline double chain_tolerance(int64_t operations, double magnitude) {
  return 1.01 * static_cast<double>(operations) * kF32Roundoff * std::fabs(magnitude) + 0x1p-149;
}

// Attention: scores are dot products over head_dim values, `score_norm` is the largest
// scale * |q| * |k|, and every value is at most value_max. An error of a score is one of the same
// size in the logarithm of a weight; the weights add up to one.
inline double attention_tolerance(
    Arithmetic arithmetic, int64_t head_dim, double score_norm, double value_max) {
  const double score = dot_tolerance(arithmetic, head_dim, score_norm, 1);
  const double weight =
      factor_error(arithmetic == Arithmetic::kHalf ? arithmetic : Arithmetic::kF32);
  return (2 * score + kDeviations * weight * (1 + score_norm)) * value_max + 0x1p-149;
}

}  // namespace pavo::test
