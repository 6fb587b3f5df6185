#include "plugins/cpu/dequantize.h"

#include <cstring>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/quantized.h"
#include "tests/tolerance.h"

namespace pavo::cpu {
namespace {

struct Golden {
  const char* name;
  int32_t type;
  std::vector<uint8_t> bytes;
  std::vector<float> values;
};

#define PAVO_UNPACK(...) __VA_ARGS__
#define PAVO_GOLDEN(type, stored, decoded) \
  {#type, PAVO_TYPE_##type, {PAVO_UNPACK stored}, {PAVO_UNPACK decoded}},

const std::vector<Golden>& goldens() {
  static const std::vector<Golden> list = {
#include "tests/plugins/cpu/dequantize_golden.inc"
  };
  return list;
}

#undef PAVO_GOLDEN
#undef PAVO_UNPACK

std::vector<std::byte> to_bytes(const std::vector<uint8_t>& values) {
  std::vector<std::byte> bytes(values.size());
  std::memcpy(bytes.data(), values.data(), values.size());
  return bytes;
}

TEST(Dequantize, GivesTheValuesOfAnotherImplementation) {
  for (const Golden& golden : goldens()) {
    SCOPED_TRACE(golden.name);
    const std::vector<std::byte> bytes = to_bytes(golden.bytes);
    const auto count = static_cast<int64_t>(golden.values.size());
    ASSERT_EQ(static_cast<int64_t>(bytes.size()), pavo_type_row_bytes(golden.type, count));
    std::vector<float> decoded(golden.values.size());
    dequantize_row(golden.type, bytes.data(), count, decoded.data());
    for (size_t i = 0; i < decoded.size(); ++i) {
      const auto value = static_cast<double>(golden.values[i]);
      // Rounded after each of at most three operations, on values of up to a few hundred.
      const double tolerance = test::chain_tolerance(3, std::fabs(value) + 4);
      EXPECT_NEAR(static_cast<double>(decoded[i]), value, tolerance) << "value " << i;
      EXPECT_NEAR(
          test::row_value(golden.type, bytes.data(), static_cast<int64_t>(i)), value, tolerance)
          << "the tests' own decoder, value " << i;
    }
  }
}

TEST(Dequantize, AgreesWithTheFormulaOnRandomBlocks) {
  test::Random random;
  SCOPED_TRACE("seed " + std::to_string(random.seed()));
  for (const int32_t type : test::kWeightTypes) {
    SCOPED_TRACE(pavo_type_name(type));
    ASSERT_TRUE(can_dequantize(type));
    const int64_t count = 4 * pavo_type_block_values(type);
    std::vector<std::byte> row = test::random_weights(random, type, count);
    row.insert(row.begin(), std::byte{0});  // an odd address
    std::vector<float> decoded(static_cast<size_t>(count));
    dequantize_row(type, row.data() + 1, count, decoded.data());
    for (int64_t i = 0; i < count; ++i) {
      const double value = test::row_value(type, row.data() + 1, i);
      EXPECT_NEAR(
          static_cast<double>(decoded[static_cast<size_t>(i)]),
          value,
          test::chain_tolerance(3, std::fabs(value) + 4))
          << "value " << i;
    }
  }
}

TEST(Dequantize, ReadsRowsOfPages) {
  test::Random random;
  SCOPED_TRACE("seed " + std::to_string(random.seed()));
  for (const int32_t type : test::kKvTypes) {
    for (const int64_t dim : {1, 32, 50, 128}) {
      ASSERT_TRUE(can_dequantize_kv(type));
      pavo_kv_layout layout{};
      ASSERT_EQ(pavo_kv_layout_init(type, dim, &layout), 0);
      const std::vector<std::byte> page = test::random_pages(random, type, 1, 1, dim);
      std::vector<float> decoded(static_cast<size_t>(dim));
      for (const int64_t row : {0, 1, 63}) {
        dequantize_kv_row(type, layout, page.data(), row, dim, decoded.data());
        for (int64_t i = 0; i < dim; ++i) {
          const double value = test::page_value(type, dim, page.data(), row, i);
          EXPECT_NEAR(
              static_cast<double>(decoded[static_cast<size_t>(i)]),
              value,
              test::chain_tolerance(2, value));
        }
      }
    }
  }
}

TEST(Dequantize, KnowsItsTypes) {
  constexpr int32_t kOthers[] = {PAVO_TYPE_I32, PAVO_TYPE_Q5_0, PAVO_TYPE_IQ4_XS, -1, 999};
  for (const int32_t type : kOthers) {
    EXPECT_FALSE(can_dequantize(type));
    EXPECT_FALSE(can_dequantize_kv(type));
  }
}

}  // namespace
}  // namespace pavo::cpu
