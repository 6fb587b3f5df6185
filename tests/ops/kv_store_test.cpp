#include <cmath>
#include <limits>

#include "tests/ops/kv_store_case.h"
#include "tests/ops/op_test.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

class KvStoreTest : public OpTest {
 protected:
  OpCase make(
      int32_t type,
      int64_t pages,
      int64_t heads,
      int64_t dim,
      const std::vector<int32_t>& slots,
      const std::vector<float>& values,
      int64_t row_gap = 0) {
    return make_kv_store(random_, type, pages, heads, dim, slots, values, row_gap);
  }

  OpCase make(
      int32_t type, int64_t pages, int64_t heads, int64_t dim, const std::vector<int32_t>& slots) {
    const auto count = static_cast<int64_t>(slots.size()) * heads * dim;
    return make(type, pages, heads, dim, slots, random_.normals(count, 2));
  }

  void check(const OpCase& test_case) {
    const std::vector<std::byte> expected = expect_kv_store(test_case);
    for_each_kernel(test_case, [&](const OpRun& run) {
      ASSERT_FALSE(run.refused()) << run.verdict.text;
      ASSERT_EQ(run.code, PAVO_OK) << run.message;
      EXPECT_EQ(run.damage, std::vector<std::string>());
      const std::vector<std::byte>& actual = run.tensors[1].bytes;
      const auto [wrong, wanted] = std::mismatch(actual.begin(), actual.end(), expected.begin());
      EXPECT_TRUE(wrong == actual.end())
          << "byte " << wrong - actual.begin() << " of " << actual.size() << " is "
          << static_cast<int>(*wrong) << ", expected " << static_cast<int>(*wanted);
    });
  }
};

TEST_P(KvStoreTest, WritesTheBytesOfEveryType) {
  for (const int32_t type : kKvTypes) {
    for (const int64_t dim : {1, 15, 31, 32, 33, 64, 80, 100, 128}) {
      SCOPED_TRACE(std::string(pavo_type_name(type)) + ", head " + std::to_string(dim));
      check(make(type, 3, 2, dim, {130, 0, 63, 64}));
    }
  }
}

TEST_P(KvStoreTest, ManyTokens) {
  std::vector<int32_t> slots(256);
  for (size_t i = 0; i < slots.size(); ++i) {
    slots[i] = static_cast<int32_t>((i * 37) % 256);
  }
  for (const int32_t type : kKvTypes) {
    check(make(type, 4, 3, 64, slots));
  }
}

TEST_P(KvStoreTest, PaddingStoresNothing) {
  for (const int32_t type : kKvTypes) {
    check(make(type, 1, 2, 48, {-1, 5, -1, INT32_MIN}));
  }
}

TEST_P(KvStoreTest, RowsWithGaps) {
  for (const int32_t type : kKvTypes) {
    check(make(type, 1, 2, 40, {9, 3}, random_.normals(2 * 2 * 40), 28));
  }
}

TEST_P(KvStoreTest, ValuesAtTheEdges) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::vector<float> edges = {
      0.0F,       -0.0F,      1.0F,       -1.0F,   65504.0F, 65519.0F, 65520.0F,  -70000.0F,
      1e-8F,      6e-8F,      2.9e-8F,    6.2e-5F, 1e-40F,   3e38F,    kInfinity, -kInfinity,
      0.5F,       1.5F,       2.5F,       -0.5F,   -2.5F,    127.0F,   126.5F,    -126.5F,
      1.0009766F, 1.0004883F, 1.0014648F, 0.333F,  1e5F,     -1e5F,    8.4e6F,    9e6F};
  for (const int32_t type : kKvTypes) {
    SCOPED_TRACE(pavo_type_name(type));
    check(make(type, 1, 1, 32, {7}, edges));
    // Each value as the largest of its own block.
    for (const float value : edges) {
      std::vector<float> row = random_.normals(32, std::isfinite(value) ? value / 4 : 1.0F);
      row[5] = value;
      check(make(type, 1, 1, 32, {7}, row));
    }
    check(make(type, 1, 1, 33, {7}, std::vector<float>(33, 0.0F)));
  }
}

TEST_P(KvStoreTest, NanBecomesNanOrZero) {
  std::vector<float> values = random_.normals(64);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  values[40] = -std::numeric_limits<float>::quiet_NaN();
  for (const int32_t type : kKvTypes) {
    SCOPED_TRACE(pavo_type_name(type));
    check(make(type, 1, 1, 64, {0}, values));
  }
}

TEST_P(KvStoreTest, SlotOutsideOfThePoolDoesNoHarm) {
  expect_no_harm(make(PAVO_TYPE_F16, 2, 1, 16, {3, 128}));
}

TEST_P(KvStoreTest, RefusesWhatDoesNotFit) {
  OpCase test_case = make(PAVO_TYPE_F16, 1, 2, 16, {0});
  test_case.tensors[0] = activation({1, 1, 16}, random_.normals(16));
  expect_refusal(test_case, PAVO_REASON_SHAPE_MISMATCH, 1);
  test_case = make(PAVO_TYPE_F16, 1, 2, 16, {0});
  test_case.tensors[1].desc.shape[2] = 32;
  expect_refusal(test_case, PAVO_REASON_SHAPE_MISMATCH, 1);
  test_case = make(PAVO_TYPE_F16, 1, 2, 16, {0});
  test_case.outputs[0] = 0;
  expect_refusal(test_case, PAVO_REASON_OPERAND, 3);
}

PAVO_INSTANTIATE_OP_TEST(KvStoreTest);

}  // namespace
}  // namespace pavo::test
