#include "kernels/ops/kv_store.cuh"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include "plugins/cpu/kv_quantize.h"
#include "plugins/cuda-sm61/arch.h"
#include "tests/kernels/ops/emulator/emulator.h"
#include "tests/kernels/ops/node_fixture.h"

namespace pavo::cuda::testing {
namespace {

constexpr int64_t kPages = 3, kHeads = 2;
// Row 5 of page 2, padding, the last row there is, one beyond, the first.
const std::vector<int32_t> kSlots = {
    2 * PAVO_KV_PAGE_ROWS + 5,
    -1,
    kPages* PAVO_KV_PAGE_ROWS - 1,
    kPages* PAVO_KV_PAGE_ROWS,
    0,
    std::numeric_limits<int32_t>::min()};

std::vector<float> difficult_values(int64_t dims, std::mt19937& random) {
  const auto rows = static_cast<int64_t>(kSlots.size()) * kHeads;
  std::vector<float> values = random_values(rows * dims, random);
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float special[] = {
      0.0f,
      -0.0f,
      1e-42f,
      -3e-38f,
      6e-8f,
      65519.9f,
      -65520.0f,
      3e38f,
      infinity,
      -infinity,
      nan,
      0.5f,
      127.5f};
  size_t i = 0;
  for (const float value : special) {
    values[i % values.size()] = value;
    i += 7;
  }
  // A head of NaN alone, and one of numbers below every scale.
  for (int64_t k = 0; k < dims; ++k) {
    values[static_cast<size_t>(8 * dims + k)] = nan;
    values[static_cast<size_t>(9 * dims + k)] = 1e-44f;
  }
  return values;
}

class KvStore : public ::testing::TestWithParam<int32_t> {};

TEST_P(KvStore, WritesTheBytesOfTheCpuPluginAndNothingElse) {
  std::mt19937 random(11);
  for (const int64_t dims : {1, 31, 32, 33, 64, 80, 200}) {
    for (const Placing placing : {Placing{0, 0}, Placing{5, 3}}) {
      pavo_kv_layout layout{};
      ASSERT_EQ(pavo_kv_layout_init(GetParam(), dims, &layout), 0);
      std::vector<std::byte> expected(
          static_cast<size_t>(kPages * kHeads * layout.head_bytes), std::byte{0xa5});
      const std::vector<float> x = difficult_values(dims, random);

      NodeFixture node(pavo_op_kv_store);
      node.params(pavo_kv_store_params{});
      const auto tokens = static_cast<int64_t>(kSlots.size());
      node.activation({tokens, kHeads, dims}, x, placing);
      const uint32_t pool =
          node.pool(GetParam(), {kPages, kHeads, PAVO_KV_PAGE_ROWS, dims}, expected);
      node.indices(kSlots);
      node.output_is(pool);
      ASSERT_EQ(node.run(entry<KvStoreWarp<Sm61>, Sm61>()), "");

      for (int64_t row = 0; row < tokens * kHeads; ++row) {
        const int64_t slot = kSlots[static_cast<size_t>(row / kHeads)];
        if (slot >= 0 && slot < kPages * PAVO_KV_PAGE_ROWS) {
          const int64_t head = slot / PAVO_KV_PAGE_ROWS * kHeads + row % kHeads;
          cpu::quantize_kv_row(
              GetParam(),
              layout,
              x.data() + row * dims,
              dims,
              expected.data() + head * layout.head_bytes,
              slot % PAVO_KV_PAGE_ROWS);
        }
      }
      EXPECT_EQ(std::memcmp(node.data(pool), expected.data(), expected.size()), 0)
          << "dims " << dims << ", gap " << placing.gap;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Types,
    KvStore,
    ::testing::Values(PAVO_TYPE_F32, PAVO_TYPE_F16, PAVO_TYPE_BF16, PAVO_TYPE_Q8_0),
    [](const auto& info) { return pavo_type_name(info.param); });

TEST(KvStorePredicate, RefusesTypesWithoutDefinedRounding) {
  NodeFixture node(pavo_op_kv_store);
  node.params(pavo_kv_store_params{});
  node.activation({1, 1, 32}, std::vector<float>(32));
  const uint32_t pool = node.pool(PAVO_TYPE_Q4_0, {1, 1, PAVO_KV_PAGE_ROWS, 32}, {});
  node.indices({0});
  node.output_is(pool);
  EXPECT_NE(node.run(entry<KvStoreWarp<Sm61>, Sm61>()).find("q4_0"), std::string::npos);
}

}  // namespace
}  // namespace pavo::cuda::testing
