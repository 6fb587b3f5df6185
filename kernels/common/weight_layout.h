// How the CUDA plugins keep weights in device memory.
//
// Weights that are multiplied or gathered: one row after the other, each row planar. What the file
// interleaves block by block lies in up to four parts per row, each [block] and 16-byte aligned, so
// that every part loads as vectors and a single row can still be read (gather). Rows are padded to
// 16 bytes with zeros. Weights that are read element by element (PAVO_USE_DENSE): plain f32, no
// padding.
//
//   type      low                   high         scale                   extra
//   f32 f16   the values
//   bf16      the values
//   q4_0      16 bytes of nibbles                d (f16)
//   q4_1      16 bytes of nibbles                d, m (2 x f16)
//   q8_0      32 int8                            d (f16)
//   q4_k      128 bytes of nibbles               8 pairs of bytes        d, dmin (2 x f16)
//   q6_k      128 bytes of nibbles  64 bytes     scales[16]              d (f16)
//
// Nibbles: byte j of 16 has values j and j + 16 of 32, the first in its low half. q4_k's pairs are
// scale and minimum of 32 values. q6_k's high bits: byte 4 w + b of 8 has the top two bits of
// values 8 w + b, 8 w + b + 4, 8 w + b + 16 and 8 w + b + 20 of 32, from bit 0 on.
#pragma once

#include <cstdint>

#include "pavo/plugin.h"

#if defined(__CUDACC__)
#define PAVO_HOST_DEVICE __host__ __device__
#else
#define PAVO_HOST_DEVICE
#endif

namespace pavo::cuda {

constexpr int64_t kWeightAlignment = 256;  // of a packed weight: one wave of 128-byte lines
constexpr int64_t kWeightPartAlignment = 16;

// Bytes that one block has in each part; block_values 0: a type that is not packed.
struct BlockParts {
  int32_t block_values;
  int32_t low, high, scale, extra;
};

PAVO_HOST_DEVICE constexpr BlockParts block_parts(int32_t type) {
  switch (type) {
    case PAVO_TYPE_F32:
      return {1, 4, 0, 0, 0};
    case PAVO_TYPE_F16:
    case PAVO_TYPE_BF16:
      return {1, 2, 0, 0, 0};
    case PAVO_TYPE_Q4_0:
      return {32, 16, 0, 2, 0};
    case PAVO_TYPE_Q4_1:
      return {32, 16, 0, 4, 0};
    case PAVO_TYPE_Q8_0:
      return {32, 32, 0, 2, 0};
    case PAVO_TYPE_Q4_K:
      return {256, 128, 0, 16, 4};
    case PAVO_TYPE_Q6_K:
      return {256, 128, 64, 16, 2};
    default:
      return {0, 0, 0, 0, 0};
  }
}

// Offsets are bytes from the start of a row. The low part begins at 0.
struct WeightLayout {
  int64_t high_offset;
  int64_t scale_offset;
  int64_t extra_offset;
  int64_t row_bytes;
};

PAVO_HOST_DEVICE constexpr int64_t align_part(int64_t bytes) {
  return (bytes + kWeightPartAlignment - 1) / kWeightPartAlignment * kWeightPartAlignment;
}

// Of a row of `columns` values, a whole number of blocks of a type that block_parts knows.
PAVO_HOST_DEVICE constexpr WeightLayout weight_layout(int32_t type, int64_t columns) {
  const BlockParts parts = block_parts(type);
  const int64_t blocks = columns / parts.block_values;
  WeightLayout layout{};
  layout.high_offset = align_part(blocks * parts.low);
  layout.scale_offset = layout.high_offset + align_part(blocks * parts.high);
  layout.extra_offset = layout.scale_offset + align_part(blocks * parts.scale);
  layout.row_bytes = layout.extra_offset + align_part(blocks * parts.extra);
  return layout;
}

}  // namespace pavo::cuda
