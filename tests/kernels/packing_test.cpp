// Packed weights against the formulas of quant.h, applied to the file's blocks.
#include "kernels/host/packing.h"

#include <algorithm>
#include <random>

#include <gtest/gtest.h>

#include "tests/kernels/graph_builder.h"
#include "tests/quantized.h"

namespace pavo::cuda {
namespace {

constexpr int64_t kColumns = 768;
constexpr int64_t kRows = 3;

PackedForm form_of(int32_t type, uint32_t uses) {
  GraphBuilder builder;
  const uint32_t weight = builder.weight(type, {kRows, kColumns}, uses);
  PackedForm form{};
  pavo_error error = make_error();
  EXPECT_EQ(packed_form(&builder.at(weight), &form, &error), PAVO_OK) << text_of(error);
  return form;
}

std::vector<std::byte> random_bytes(size_t count) {
  std::mt19937 random(20);
  std::vector<std::byte> bytes(count);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
  return bytes;
}

// Packed rows, in memory that was not zero.
std::vector<std::byte> packed(const PackedForm& form, const std::vector<std::byte>& file) {
  std::vector<std::byte> out(static_cast<size_t>(form.size_bytes()), std::byte{0xaa});
  pack_rows(form, file.data(), form.rows, out.data());
  return out;
}

// Part `size` bytes a block: equal to the file's bytes at `from` of each block, then zeros.
void expect_part(
    const PackedForm& form,
    const std::vector<std::byte>& file,
    const std::vector<std::byte>& out,
    int64_t part_offset,
    int64_t from,
    int64_t size) {
  const int64_t block_bytes = pavo_type_block_bytes(form.type);
  const int64_t blocks = kColumns / pavo_type_block_values(form.type);
  for (int64_t row = 0; row < kRows; ++row) {
    const std::byte* part = out.data() + row * form.row_bytes + part_offset;
    for (int64_t block = 0; block < blocks; ++block) {
      const std::byte* source =
          file.data() + row * form.file_row_bytes + block * block_bytes + from;
      ASSERT_TRUE(std::equal(source, source + size, part + block * size))
          << pavo_type_name(form.type) << " row " << row << " block " << block;
    }
    for (int64_t i = blocks * size; i < align_part(blocks * size); ++i) {
      ASSERT_EQ(part[i], std::byte{0});
    }
  }
}

TEST(PackingTest, PlanarPartsHoldTheFilesFields) {
  struct Case {
    int32_t type;
    int64_t low, low_size, high, high_size, scale, scale_size, extra, extra_size;
  };
  const Case cases[] = {
      {PAVO_TYPE_Q4_0, offsetof(pavo_block_q4_0, qs), 16, 0, 0, 0, 2, 0, 0},
      {PAVO_TYPE_Q4_1, offsetof(pavo_block_q4_1, qs), 16, 0, 0, 0, 4, 0, 0},
      {PAVO_TYPE_Q8_0, offsetof(pavo_block_q8_0, qs), 32, 0, 0, 0, 2, 0, 0}};
  for (const Case& c : cases) {
    const PackedForm form = form_of(c.type, PAVO_USE_MATMUL | PAVO_USE_GATHER);
    const auto file = random_bytes(static_cast<size_t>(kRows * form.file_row_bytes));
    const auto out = packed(form, file);
    const WeightLayout layout = weight_layout(c.type, kColumns);
    expect_part(form, file, out, 0, c.low, c.low_size);
    expect_part(form, file, out, layout.high_offset, c.high, c.high_size);
    expect_part(form, file, out, layout.scale_offset, c.scale, c.scale_size);
    expect_part(form, file, out, layout.extra_offset, c.extra, c.extra_size);
    EXPECT_EQ(form.row_bytes % 16, 0);
    EXPECT_LE(form.row_bytes, form.file_row_bytes + 4 * 15) << pavo_type_name(c.type);
  }
}

// Value i of a row by what weight_layout.h says of its parts.
double packed_value(int32_t type, const std::byte* row, int64_t i) {
  const WeightLayout layout = weight_layout(type, kColumns);
  const auto byte = [](const std::byte& at) { return std::to_integer<int>(at); };
  const auto half = [&](int64_t at) { return test::f16_value(test::read_as<uint16_t>(row + at)); };
  const int64_t in_32 = i % 32;
  const int low = byte(row[i / 32 * 16 + i % 16]) >> (in_32 < 16 ? 0 : 4) & 15;
  if (type == PAVO_TYPE_Q4_K) {
    const std::byte* pair = row + layout.scale_offset + i / 32 * 2;
    const int64_t d = layout.extra_offset + i / 256 * 4;
    return half(d) * byte(pair[0]) * low - half(d + 2) * byte(pair[1]);
  }
  const std::byte tops = row[layout.high_offset + i / 32 * 8 + in_32 % 16 / 8 * 4 + in_32 % 4];
  const int high = byte(tops) >> (in_32 / 16 * 4 + in_32 % 8 / 4 * 2) & 3;
  const auto scale = static_cast<int8_t>(row[layout.scale_offset + i / 16]);
  return half(layout.extra_offset + i / 256 * 2) * scale * (high * 16 + low - 32);
}

TEST(PackingTest, KBlocksKeepTheirValues) {
  for (const int32_t type : {PAVO_TYPE_Q4_K, PAVO_TYPE_Q6_K}) {
    const PackedForm form = form_of(type, PAVO_USE_MATMUL | PAVO_USE_GATHER);
    auto file = random_bytes(static_cast<size_t>(kRows * form.file_row_bytes));
    const int64_t bytes = pavo_type_block_bytes(type);
    for (int64_t at = 0; at < kRows * form.file_row_bytes; at += bytes) {  // finite scales
      file[static_cast<size_t>(type == PAVO_TYPE_Q4_K ? at + 1 : at + bytes - 1)] &=
          std::byte{0xbf};
      file[static_cast<size_t>(type == PAVO_TYPE_Q4_K ? at + 3 : at + bytes - 1)] &=
          std::byte{0xbf};
    }
    const auto out = packed(form, file);
    for (int64_t row = 0; row < kRows; ++row) {
      for (int64_t i = 0; i < kColumns; ++i) {
        const std::byte* block = file.data() + row * form.file_row_bytes + i / 256 * bytes;
        ASSERT_EQ(
            packed_value(type, out.data() + row * form.row_bytes, i),
            test::block_value(type, block, static_cast<int>(i % 256)))
            << pavo_type_name(type) << " row " << row << " value " << i;
      }
    }
    EXPECT_EQ(form.row_bytes % 16, 0);
  }
}

TEST(PackingTest, FloatRowsAreCopiedAndPadded) {
  GraphBuilder builder;
  const uint32_t weight = builder.weight(PAVO_TYPE_F16, {kRows, 5});
  PackedForm form{};
  pavo_error error = make_error();
  ASSERT_EQ(packed_form(&builder.at(weight), &form, &error), PAVO_OK) << text_of(error);
  EXPECT_EQ(form.row_bytes, 16);
  const auto file = random_bytes(kRows * 10);
  const auto out = packed(form, file);
  for (size_t row = 0; row < kRows; ++row) {
    for (size_t i = 0; i < 16; ++i) {
      EXPECT_EQ(out[row * 16 + i], i < 10 ? file[row * 10 + i] : std::byte{0});
    }
  }
}

TEST(PackingTest, DenseBecomesF32) {
  const float values[] = {1.0f, -2.5f, 65504.0f, 6.103515625e-05f};
  for (const int32_t type : {PAVO_TYPE_F32, PAVO_TYPE_F16, PAVO_TYPE_BF16}) {
    const PackedForm form = {type, true, 1, 4, type == PAVO_TYPE_F32 ? 16 : 8, 16};
    std::vector<std::byte> file(16);
    for (size_t i = 0; i < 4; ++i) {
      const uint16_t half =
          type == PAVO_TYPE_F16 ? pavo_f32_to_f16(values[i]) : pavo_f32_to_bf16(values[i]);
      if (type == PAVO_TYPE_F32) {
        std::memcpy(&file[4 * i], &values[i], 4);
      } else {
        std::memcpy(&file[2 * i], &half, 2);
      }
    }
    float got[4];
    pack_rows(form, file.data(), 1, reinterpret_cast<std::byte*>(got));
    for (size_t i = 0; i < 4; ++i) {
      const float expected =
          type == PAVO_TYPE_BF16 ? pavo_bf16_to_f32(pavo_f32_to_bf16(values[i])) : values[i];
      EXPECT_EQ(got[i], expected) << pavo_type_name(type);
    }
  }
}

TEST(PackingTest, RefusesWhatHasNoForm) {
  const auto code = [](int32_t type, uint32_t uses, std::vector<int64_t> shape) {
    GraphBuilder builder;
    const uint32_t weight = builder.weight(type, shape, uses);
    PackedForm form{};
    pavo_error error = make_error();
    return packed_form(&builder.at(weight), &form, &error);
  };
  EXPECT_EQ(code(PAVO_TYPE_Q2_K, PAVO_USE_MATMUL, {1, 256}), PAVO_ERROR_UNSUPPORTED);
  EXPECT_EQ(code(PAVO_TYPE_Q8_0, PAVO_USE_DENSE, {64}), PAVO_ERROR_UNSUPPORTED);
  EXPECT_EQ(code(PAVO_TYPE_F32, PAVO_USE_DENSE | PAVO_USE_MATMUL, {4, 4}), PAVO_ERROR_UNSUPPORTED);
  EXPECT_EQ(code(PAVO_TYPE_F32, 0, {4, 4}), PAVO_ERROR_UNSUPPORTED);
  EXPECT_EQ(code(PAVO_TYPE_Q8_0, PAVO_USE_MATMUL, {4, 33}), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(code(PAVO_TYPE_F32, PAVO_USE_MATMUL, {-4, 4}), PAVO_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(
      code(PAVO_TYPE_F32, PAVO_USE_MATMUL, {INT64_MAX, INT64_MAX}), PAVO_ERROR_INVALID_ARGUMENT);
}

}  // namespace
}  // namespace pavo::cuda
