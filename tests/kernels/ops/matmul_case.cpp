#include "tests/kernels/ops/matmul_case.h"

#include <algorithm>
#include <limits>

#include "kernels/common/weight_layout.h"
#include "tests/kernels/ops/emulator/emulator.h"

namespace pavo::cuda::testing {
namespace {

std::vector<float> make_x(const MatmulCase& c, std::mt19937& random) {
  std::vector<float> x = random_values(c.tokens * c.columns, random);
  if (c.values == Values::kAny) {
    return x;
  }
  std::uniform_int_distribution<int> integer(-127, 127);
  std::uniform_int_distribution<int> exponent(-8, 2);
  for (size_t block = 0; block < x.size(); block += 32) {
    const float step = std::ldexp(1.0f, exponent(random));
    for (size_t i = 0; i < 32; ++i) {
      x[block + i] = step * static_cast<float>(integer(random));
    }
    x[block + static_cast<size_t>(random() % 32)] = -127.0f * step;
  }
  return x;
}

struct Expected {
  double sum = 0, magnitude = 0, variance = 0;
};

Expected dot(const float* x, const float* w, int64_t columns) {
  Expected e;
  for (int64_t block = 0; block < columns; block += 32) {
    const int64_t end = std::min(block + 32, columns);
    double peak = 0;
    double squares = 0;
    for (int64_t k = block; k < end; ++k) {
      const double product = double{x[k]} * w[k];
      e.sum += product;
      e.magnitude += std::abs(product);
      peak = std::max(peak, std::abs(double{x[k]}));
      squares += double{w[k]} * w[k];
    }
    e.variance += squares * (peak / 127) * (peak / 127) / 12;
  }
  return e;
}

void compare(
    const MatmulCase& c,
    const std::vector<float>& x,
    const std::vector<float>& w,
    const std::vector<float>& bias,
    const std::vector<float>& got,
    MatmulOutcome* outcome) {
  for (int64_t t = 0; t < c.tokens; ++t) {
    for (int64_t n = 0; n < c.rows; ++n) {
      Expected e = dot(x.data() + t * c.columns, w.data() + n * c.columns, c.columns);
      if (c.bias) {
        e.sum += bias[static_cast<size_t>(n)];
        e.magnitude += std::abs(double{bias[static_cast<size_t>(n)]});
      }
      const double error = std::abs(got[static_cast<size_t>(t * c.rows + n)] - e.sum);
      const auto share = [&](double unit) {
        return error == 0                       ? 0
               : unit == 0 || std::isnan(error) ? std::numeric_limits<double>::infinity()
                                                : error / unit;
      };
      outcome->worst = std::max(outcome->worst, share(e.magnitude));
      outcome->worst_deviation = std::max(outcome->worst_deviation, share(std::sqrt(e.variance)));
    }
  }
}

}  // namespace

MatmulOutcome run_matmul(const MatmulCase& c, const Kernel& kernel) {
  std::mt19937 random(11);
  std::vector<float> x = make_x(c, random);
  std::transform(x.begin(), x.end(), x.begin(), [&](float value) { return value * c.x_factor; });
  const WeightRows w = random_weight(c.type, c.rows, c.columns, random);
  const std::vector<float> bias = random_values(c.rows, random);
  NodeFixture node(pavo_op_matmul);
  node.caps.sm_count = c.sm_count;
  node.params(pavo_matmul_params{0, c.precision});
  node.activation({c.tokens, c.columns}, x, c.x_placing);
  node.weight(c.type, PAVO_USE_MATMUL, {c.rows, c.columns}, w.packed);
  if (c.bias) {
    std::vector<std::byte> bytes(bias.size() * sizeof(float));
    std::memcpy(bytes.data(), bias.data(), bytes.size());
    node.weight(PAVO_TYPE_F32, PAVO_USE_DENSE, {c.rows}, bytes);
  }
  const uint32_t out = node.output({c.tokens, c.rows}, c.out_placing);
  MatmulOutcome outcome;
  outcome.refusal = node.run(kernel, &outcome.launched);
  if (outcome.refusal.empty()) {
    compare(c, x, decoded(c.type, w.file, c.rows, c.columns), bias, node.values(out), &outcome);
  }
  return outcome;
}

}  // namespace pavo::cuda::testing
