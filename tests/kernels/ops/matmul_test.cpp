#include <gtest/gtest.h>

#include "kernels/ops/matmul_gemm_f32.cuh"
#include "kernels/ops/matmul_gemm_half.cuh"
#include "kernels/ops/matmul_gemm_int8.cuh"
#include "kernels/ops/matmul_gemv_f32.cuh"
#include "kernels/ops/matmul_gemv_half.cuh"
#include "kernels/ops/matmul_gemv_int8.cuh"
#include "kernels/ops/matmul_generic.cuh"
#include "plugins/cuda-sm60/arch.h"
#include "plugins/cuda-sm61/arch.h"
#include "tests/kernels/ops/emulator/emulator.h"
#include "tests/kernels/ops/matmul_case.h"

namespace pavo::cuda::testing {
namespace {

using Launched = std::vector<std::string>;

const Placing kAnywhere = {1, 3};

class Matmul : public ::testing::TestWithParam<int32_t> {
 protected:
  int32_t type() const { return GetParam(); }
  // A K that ends inside of every step of every kernel, as far as the type allows, and is long
  // enough to be split.
  int64_t columns() const {
    const int32_t block = pavo_type_block_values(type());
    return block == 1 ? 331 : block == 32 ? 1120 : 2304;
  }
  // The same for kernels that do not split K.
  int64_t gemm_columns() const {
    const int32_t block = pavo_type_block_values(type());
    return block == 1 ? 331 : block == 32 ? 224 : 512;
  }
  // Runs threads in both orders: a missing barrier shows in one of them.
  static void check(MatmulCase c, const Kernel& kernel, const Launched& launched) {
    for (const auto order : {emulator::Order::kForward, emulator::Order::kReverse}) {
      emulator::set_order(order);
      const MatmulOutcome outcome = run_matmul(c, kernel);
      ASSERT_EQ(outcome.refusal, "");
      EXPECT_EQ(outcome.launched, launched);
      if (launched.front() == "matmul_quantise" && c.values == Values::kAny) {
        EXPECT_LT(outcome.worst_deviation, kInt8Limit) << c.tokens << " tokens, " << c.rows;
      } else if (launched.front() == "matmul_halve") {
        EXPECT_LT(outcome.worst_deviation, kHalfLimit) << c.tokens << " tokens, " << c.rows;
      } else {
        EXPECT_LT(outcome.worst, kF32Limit) << c.tokens << " tokens, " << c.rows << " rows";
      }
    }
    emulator::set_order(emulator::Order::kForward);
  }
};

TEST_P(Matmul, GenericTakesEveryLayout) {
  for (const int64_t tokens : {1, 5}) {
    check(
        {type(), tokens, 9, columns(), true, kAnywhere, kAnywhere},
        entry<MatmulGeneric<Sm61>, Sm61>(),
        {"matmul_generic"});
  }
}

TEST_P(Matmul, GemvF32) {
  const Launched launched = {"matmul_lane_order", "matmul_gemv_f32"};
  const Kernel kernel = entry<MatmulGemvF32<Sm60>, Sm60>();
  for (const int64_t tokens : {1, 2, 3, 8, 11}) {
    check({type(), tokens, 9, columns(), true, kAnywhere, kAnywhere}, kernel, launched);
  }
  MatmulCase whole_rows = {type(), 1, 130, columns()};
  whole_rows.sm_count = 1;  // enough rows for one multiprocessor: no split
  check(whole_rows, kernel, launched);
}

TEST_P(Matmul, GemmF32) {
  const Kernel kernel = entry<MatmulGemmF32<Sm60>, Sm60>();
  check({type(), 35, 70, gemm_columns(), true, kAnywhere, kAnywhere}, kernel, {"matmul_gemm_f32"});
  MatmulCase large = {type(), 70, 150, gemm_columns(), true};
  large.sm_count = 1;
  check(large, kernel, {"matmul_gemm_f32"});
}

class MatmulInt8 : public Matmul {};

TEST_P(MatmulInt8, Gemv) {
  const Launched launched = {"matmul_quantise", "matmul_gemv_int8"};
  const Kernel kernel = entry<MatmulGemvInt8<Sm61>, Sm61>();
  for (const Values values : {Values::kAny, Values::kExactInInt8}) {
    for (const int64_t tokens : {1, 2, 3, 11}) {
      check({type(), tokens, 9, columns(), true, kAnywhere, kAnywhere, values}, kernel, launched);
    }
    MatmulCase whole_rows = {type(), 1, 130, columns(), false, {}, {}, values};
    whole_rows.sm_count = 1;
    check(whole_rows, kernel, launched);
  }
}

TEST_P(MatmulInt8, GemvHalf) {
  const Launched launched = {"matmul_halve", "matmul_gemv_half"};
  const Kernel kernel = entry<MatmulGemvHalf<Sm60>, Sm60>();
  for (const int64_t tokens : {1, 2, 3, 11}) {
    check({type(), tokens, 9, columns(), true, kAnywhere, kAnywhere}, kernel, launched);
  }
  MatmulCase large_values = {type(), 1, 130, columns()};
  large_values.sm_count = 1;
  large_values.x_factor = 1e30f;
  check(large_values, kernel, launched);
}

TEST_P(MatmulInt8, Gemm) {
  const Launched launched = {"matmul_quantise", "matmul_gemm_int8"};
  const Kernel kernel = entry<MatmulGemmInt8<Sm61>, Sm61>();
  for (const Values values : {Values::kAny, Values::kExactInInt8}) {
    check({type(), 35, 70, gemm_columns(), true, kAnywhere, kAnywhere, values}, kernel, launched);
    MatmulCase large = {type(), 70, 150, gemm_columns(), true, {}, {}, values};
    large.sm_count = 1;
    check(large, kernel, launched);
  }
}

TEST_P(MatmulInt8, GemmHalf) {
  const Launched launched = {"matmul_halve", "matmul_gemm_half"};
  const Kernel kernel = entry<MatmulGemmHalf<Sm60>, Sm60>();
  check({type(), 35, 70, gemm_columns(), true, kAnywhere, kAnywhere}, kernel, launched);
  MatmulCase large = {type(), 70, 150, gemm_columns(), true};
  large.sm_count = 1;
  check(large, kernel, launched);
}

TEST_P(MatmulInt8, ExactPrecisionIsRefused) {
  MatmulCase c = {type(), 1, 4, columns()};
  c.precision = PAVO_PRECISION_EXACT;
  EXPECT_NE(run_matmul(c, entry<MatmulGemvInt8<Sm61>, Sm61>()).refusal, "");
  EXPECT_NE(run_matmul(c, entry<MatmulGemmInt8<Sm61>, Sm61>()).refusal, "");
  EXPECT_NE(run_matmul(c, entry<MatmulGemvHalf<Sm60>, Sm60>()).refusal, "");
  EXPECT_NE(run_matmul(c, entry<MatmulGemmHalf<Sm60>, Sm60>()).refusal, "");
  EXPECT_EQ(run_matmul(c, entry<MatmulGemvF32<Sm61>, Sm61>()).refusal, "");
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    Matmul,
    ::testing::Values(
        PAVO_TYPE_F32,
        PAVO_TYPE_F16,
        PAVO_TYPE_BF16,
        PAVO_TYPE_Q4_0,
        PAVO_TYPE_Q4_1,
        PAVO_TYPE_Q8_0,
        PAVO_TYPE_Q4_K,
        PAVO_TYPE_Q6_K),
    [](const auto& info) { return pavo_type_name(info.param); });

INSTANTIATE_TEST_SUITE_P(
    Types,
    MatmulInt8,
    ::testing::Values(
        PAVO_TYPE_Q4_0, PAVO_TYPE_Q4_1, PAVO_TYPE_Q8_0, PAVO_TYPE_Q4_K, PAVO_TYPE_Q6_K),
    [](const auto& info) { return pavo_type_name(info.param); });

}  // namespace
}  // namespace pavo::cuda::testing
