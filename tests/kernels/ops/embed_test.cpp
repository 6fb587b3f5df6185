#include "kernels/ops/embed.cuh"

#include <gtest/gtest.h>

#include "plugins/cuda-sm60/arch.h"
#include "tests/kernels/ops/emulator/emulator.h"
#include "tests/kernels/ops/node_fixture.h"

namespace pavo::cuda::testing {
namespace {

const std::vector<int32_t> kIds = {4, 0, -1, 2, 5, 4, std::numeric_limits<int32_t>::min()};
constexpr int64_t kTableRows = 5;

std::vector<float> gathered(const std::vector<float>& table, int64_t columns) {
  std::vector<float> rows;
  for (const int32_t id : kIds) {
    for (int64_t i = 0; i < columns; ++i) {
      rows.push_back(
          id >= 0 && id < kTableRows ? table[static_cast<size_t>(id * columns + i)] : 0.0f);
    }
  }
  return rows;
}

class EmbedWeight : public ::testing::TestWithParam<int32_t> {};

TEST_P(EmbedWeight, GivesTheDecodersBits) {
  std::mt19937 random(7);
  const int64_t columns = pavo_type_block_values(GetParam()) == 1 ? 37 : 512;
  const WeightRows table = random_weight(GetParam(), kTableRows, columns, random);
  for (const Placing placing : {Placing{0, 0}, Placing{4, 4}, Placing{1, 3}}) {
    NodeFixture node(pavo_op_embed);
    node.params(pavo_embed_params{});
    node.weight(GetParam(), PAVO_USE_GATHER, {kTableRows, columns}, table.packed);
    node.indices(kIds);
    const uint32_t out = node.output({static_cast<int64_t>(kIds.size()), columns}, placing);
    ASSERT_EQ(node.run(entry<EmbedPacked<Sm60>, Sm60>()), "");
    EXPECT_EQ(
        node.values(out), gathered(decoded(GetParam(), table.file, kTableRows, columns), columns));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    EmbedWeight,
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

TEST(EmbedActivation, GathersRows) {
  std::mt19937 random(8);
  const std::vector<float> table = random_values(kTableRows * 33, random);
  NodeFixture node(pavo_op_embed);
  node.params(pavo_embed_params{});
  node.activation({kTableRows, 33}, table, {3, 1});
  node.indices(kIds);
  const uint32_t out = node.output({static_cast<int64_t>(kIds.size()), 33}, {2, 1});
  ASSERT_EQ(node.run(entry<EmbedGather<Sm60>, Sm60>()), "");
  EXPECT_EQ(node.values(out), gathered(table, 33));
}

TEST(EmbedWeightUse, DenseIsRefused) {
  std::mt19937 random(9);
  NodeFixture node(pavo_op_embed);
  node.params(pavo_embed_params{});
  node.weight(
      PAVO_TYPE_F32,
      PAVO_USE_GATHER | PAVO_USE_DENSE,
      {2, 4},
      random_weight(PAVO_TYPE_F32, 2, 4, random).packed);
  node.indices({0});
  node.output({1, 4});
  EXPECT_NE(node.run(entry<EmbedPacked<Sm60>, Sm60>()), "");
}

}  // namespace
}  // namespace pavo::cuda::testing
