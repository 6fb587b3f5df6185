#include <gtest/gtest.h>

#include "kernels/ops/matmul_generic.cuh"
#include "plugins/cuda-sm61/arch.h"
#include "tests/kernels/ops/emulator/emulator.h"
#include "tests/kernels/ops/matmul_case.h"

namespace pavo::cuda::testing {
namespace {

class Matmul : public ::testing::TestWithParam<int32_t> {
 protected:
  int32_t type() const { return GetParam(); }
  // A K that ends inside of every step of every kernel, as far as the type allows.
  int64_t columns() const {
    return pavo_type_block_values(type()) == 1    ? 331
           : pavo_type_block_values(type()) == 32 ? 352
                                                  : 768;
  }
};

TEST_P(Matmul, GenericTakesEveryLayout) {
  for (const int64_t tokens : {1, 5}) {
    const MatmulOutcome outcome = run_matmul(
        {type(), tokens, 9, columns(), true, {1, 3}, {2, 1}}, entry<MatmulGeneric<Sm61>, Sm61>());
    EXPECT_EQ(outcome.refusal, "");
    EXPECT_LT(outcome.worst, kF32Limit);
  }
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

}  // namespace
}  // namespace pavo::cuda::testing
