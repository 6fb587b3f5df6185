#include "kernels/common/rows.h"

#include <gtest/gtest.h>

#include "tests/kernels/graph_builder.h"

namespace pavo::cuda {
namespace {

// Row starts by the definition: mixed-radix digits of the row number times the strides.
int64_t expected_offset(const pavo_tensor& tensor, int64_t row) {
  int64_t bytes = 0;
  for (int32_t i = tensor.rank - 2; i >= 0; --i) {
    bytes += row % tensor.shape[i] * tensor.stride[i];
    row /= tensor.shape[i];
  }
  return bytes / 4;
}

TEST(RowMapTest, AnyStridesOfAnyRank) {
  GraphBuilder builder;
  const std::vector<std::vector<int64_t>> shapes = {
      {7}, {5, 7}, {3, 5, 7}, {2, 3, 5, 7}, {2, 1, 5, 7}, {1, 3, 1, 7}};
  for (const auto& shape : shapes) {
    pavo_tensor tensor = builder.at(builder.activation(shape));
    for (const int64_t gap : {0, 4, 36}) {
      // Dense, then a gap after each dimension, then dimensions in another memory order.
      for (const bool swapped : {false, true}) {
        int64_t stride = 4;
        for (int32_t i = tensor.rank - 1; i >= 0; --i) {
          tensor.stride[i] = stride;
          stride = stride * tensor.shape[i] + gap;
        }
        if (swapped && tensor.rank == 4) {
          std::swap(tensor.stride[0], tensor.stride[1]);
          tensor.stride[0] += 4096;
        }
        const RowMap map = row_map(tensor);
        EXPECT_EQ(map.columns, 7);
        int64_t rows = 1;
        for (int32_t i = 0; i + 1 < tensor.rank; ++i) {
          rows *= tensor.shape[i];
        }
        ASSERT_EQ(map.rows, rows);
        for (int64_t row = 0; row < rows; ++row) {
          EXPECT_EQ(map.offset(row), expected_offset(tensor, row));
        }
        EXPECT_EQ(map.uniform(), map.inner == rows);
        if (gap == 0 && !swapped) {
          EXPECT_TRUE(map.uniform());
        }
      }
    }
  }
}

TEST(RowMapTest, ScalarsAndEmptyTensors) {
  GraphBuilder builder;
  EXPECT_EQ(row_map(builder.at(builder.activation({}))).rows, 1);
  EXPECT_EQ(row_map(builder.at(builder.activation({}))).columns, 1);
  EXPECT_EQ(row_map(builder.at(builder.activation({0, 4}))).rows, 0);
  EXPECT_TRUE(row_map(builder.at(builder.activation({0, 4}))).uniform());
  EXPECT_EQ(row_map(builder.at(builder.activation({3, 0}))).columns, 0);
}

}  // namespace
}  // namespace pavo::cuda
