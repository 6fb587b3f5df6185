// The inner matmul kernels, for each instruction set of this machine, against double sums over what
// they are given: decoded weights, and activations rounded as the int8 form defines it.
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pavo/quant.h"

#include "plugins/cpu/ops/matmul_problem.h"
#include "plugins/cpu/simd_targets.h"
#include "plugins/cpu/thread_pool.h"
#include "tests/quantized.h"
#include "tests/random.h"

namespace pavo::cpu {
namespace {

struct Simd {
  const char* name;
  const char* target;  // the best one that dispatch may take
  int64_t vnni_bytes;  // vectors that must have VNNI; 0: not used

  friend std::ostream& operator<<(std::ostream& out, const Simd& simd) { return out << simd.name; }
};

constexpr Simd kSimds[] = {
    {"avx512_vnni", "AVX3", 64},
    {"avx512", "AVX3", 0},
    {"avx2_vnni", "AVX2", 32},
    {"avx2", "AVX2", 0},
    {"sse4", "SSE4", 0}};

struct Shape {
  int64_t tokens, rows, columns;
};

// One product with its inputs; columns are rounded up to whole blocks. Rows of x and out have gaps,
// which must stay untouched.
struct Case {
  Case(test::Random& random, int32_t type, Shape shape, bool with_bias) {
    const int64_t block = pavo_type_block_values(type);
    problem.weight_type = type;
    problem.tokens = shape.tokens;
    problem.rows = shape.rows;
    problem.columns = (shape.columns + block - 1) / block * block;
    problem.x_stride = problem.columns + 3;
    problem.out_stride = shape.rows + 5;
    w = test::random_weights(random, type, shape.rows * problem.columns);
    x = random.normals(shape.tokens * problem.x_stride);
    bias = random.normals(shape.rows);
    out.assign(static_cast<size_t>(shape.tokens * problem.out_stride), kUntouched);
    problem.w = w.data();
    problem.x = x.data();
    problem.bias = with_bias ? bias.data() : nullptr;
    problem.out = out.data();
  }

  void run(const MatmulFunctions& functions, ThreadPool& pool) {
    // Exactly as large as asked for, so that sanitizers see what lies beyond.
    const int64_t bytes =
        functions.workspace_bytes(problem.tokens, problem.columns, pool.threads());
    void* memory = nullptr;
    ASSERT_EQ(posix_memalign(&memory, 64, static_cast<size_t>(bytes)), 0);
    const std::unique_ptr<void, decltype(&std::free)> owner(memory, &std::free);
    problem.workspace = static_cast<std::byte*>(memory);
    functions.run(problem, pool);
  }

  float at(int64_t t, int64_t n) const {
    return out[static_cast<size_t>(t * problem.out_stride + n)];
  }

  static constexpr float kUntouched = 12345.0F;
  MatmulProblem problem = {};
  std::vector<std::byte> w;
  std::vector<float> x;
  std::vector<float> bias;
  std::vector<float> out;
};

// Token t of x as the int8 form sees it: blocks of 32, scale max|x| / 127, nearest even.
std::vector<double> rounded_to_int8(const float* x, int64_t count) {
  std::vector<double> rounded;
  for (int64_t first = 0; first < count; first += 32) {
    float amax = 0;
    for (int64_t i = first; i < first + 32; ++i) {
      amax = std::fmax(amax, std::fabs(x[i]));
    }
    for (int64_t i = first; i < first + 32; ++i) {
      const float code = amax > 0 ? std::nearbyint(x[i] * (127.0F / amax)) : 0.0F;
      rounded.push_back(static_cast<double>(code) * static_cast<double>(amax / 127.0F));
    }
  }
  return rounded;
}

// Every output within f32 rounding of double sums: `unit` times the sum of magnitudes.
void expect_close(const Case& c, bool int8, double unit) {
  const MatmulProblem& p = c.problem;
  const int64_t row_bytes = pavo_type_row_bytes(p.weight_type, p.columns);
  std::vector<double> w;
  for (int64_t i = 0; i < p.rows * p.columns; ++i) {
    const std::byte* row = p.w + i / p.columns * row_bytes;
    w.push_back(test::row_value(p.weight_type, row, i % p.columns));
  }
  for (int64_t t = 0; t < p.tokens; ++t) {
    const float* from = p.x + t * p.x_stride;
    const std::vector<double> x =
        int8 ? rounded_to_int8(from, p.columns) : std::vector<double>(from, from + p.columns);
    for (int64_t n = 0; n < p.rows; ++n) {
      double sum = p.bias != nullptr ? static_cast<double>(p.bias[n]) : 0.0;
      double magnitude = std::fabs(sum);
      for (int64_t k = 0; k < p.columns; ++k) {
        const double product =
            w[static_cast<size_t>(n * p.columns + k)] * x[static_cast<size_t>(k)];
        sum += product;
        magnitude += std::fabs(product);
      }
      ASSERT_NEAR(c.at(t, n), sum, unit * magnitude)
          << pavo_type_name(p.weight_type) << " t " << t << " of " << p.tokens << " n " << n
          << " of " << p.rows << " K " << p.columns;
    }
    for (int64_t n = p.rows; n < p.out_stride; ++n) {
      ASSERT_EQ(c.at(t, n), Case::kUntouched) << "gap " << t << "," << n;
    }
  }
}

std::vector<Shape> shapes() {
  std::vector<Shape> list;
  for (int64_t tokens = 1; tokens <= 17; ++tokens) {
    list.push_back({tokens, 19 + tokens, 288});
  }
  for (const int64_t tokens : {31, 32, 33, 63, 64, 65}) {
    list.push_back({tokens, 17, 160});
  }
  for (const int64_t tokens : {1, 3, 6, 9}) {
    for (const int64_t columns : {1, 32, 33, 100, 500, 2047, 2049, 8192}) {
      list.push_back({tokens, 3, columns});
    }
    for (const int64_t rows : {1, 2, 3, 15, 16, 17, 63}) {
      list.push_back({tokens, rows, 96});
    }
  }
  list.push_back({4, 5, 0});
  return list;
}

class MatmulKernels : public testing::TestWithParam<Simd> {
 protected:
  void SetUp() override {
    const Simd& simd = GetParam();
    if (!has_simd_target(simd.target)) {
      GTEST_SKIP() << "this machine has no " << simd.target;
    }
    limit_simd_target(simd.target);
    allow_vnni(simd.vnni_bytes != 0);
    if (simd.vnni_bytes != 0 && !has_vnni(simd.vnni_bytes)) {
      GTEST_SKIP() << "this machine has no VNNI for " << simd.target;
    }
  }

  void TearDown() override {
    const std::string names = simd_target_names();
    limit_simd_target(names.substr(0, names.find(',')));
  }

  void check(const MatmulFunctions& functions, int32_t type, bool int8, double unit) {
    SCOPED_TRACE("seed " + std::to_string(random_.seed()));
    ASSERT_TRUE(functions);
    ThreadPool pool(2);
    for (const Shape& shape : shapes()) {
      Case c(random_, type, shape, shape.rows % 2 == 0);
      c.run(functions, pool);
      expect_close(c, int8, unit);
      if (HasFatalFailure()) {
        return;
      }
    }
  }

  test::Random random_;
};

TEST_P(MatmulKernels, Q8dotMatchesSumsOfRoundedActivations) {
  for (const int32_t type :
       {PAVO_TYPE_Q4_0, PAVO_TYPE_Q4_1, PAVO_TYPE_Q8_0, PAVO_TYPE_Q4_K, PAVO_TYPE_Q6_K}) {
    check(matmul_q8dot_functions(), type, true, 2e-6);
  }
}

TEST_P(MatmulKernels, F32MatchesDoubleSums) {
  for (const int32_t type : test::kWeightTypes) {
    check(matmul_f32_functions(), type, false, 1e-6);
  }
}

// An infinity or a NaN among the activations must not become a number.
TEST_P(MatmulKernels, Q8dotKeepsWhatIsNotFinite) {
  ThreadPool pool(1);
  for (const float bad : {INFINITY, -INFINITY, NAN}) {
    Case c(random_, PAVO_TYPE_Q8_0, {2, 5, 64}, false);
    c.x[40] = bad;
    c.run(matmul_q8dot_functions(), pool);
    for (int64_t n = 0; n < 5; ++n) {
      EXPECT_FALSE(std::isfinite(c.at(0, n))) << bad << " n " << n;
      EXPECT_TRUE(std::isfinite(c.at(1, n))) << bad << " n " << n;
    }
  }
}

// Each output belongs to one thread, which sums in a fixed order.
TEST_P(MatmulKernels, ResultsDoNotDependOnTheThreads) {
  for (const MatmulFunctions& functions : {matmul_q8dot_functions(), matmul_f32_functions()}) {
    for (const int64_t tokens : {1, 20}) {
      Case c(random_, PAVO_TYPE_Q4_1, {tokens, 100, 576}, true);
      ThreadPool single(1);
      c.run(functions, single);
      const std::vector<float> expected = c.out;
      c.out.assign(c.out.size(), Case::kUntouched);
      ThreadPool several(3);
      c.run(functions, several);
      EXPECT_EQ(c.out, expected) << tokens;
    }
  }
}

std::string simd_name(const testing::TestParamInfo<Simd>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(, MatmulKernels, testing::ValuesIn(kSimds), simd_name);

}  // namespace
}  // namespace pavo::cpu
