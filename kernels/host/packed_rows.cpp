// pack_rows of packing.h: memory to memory, without a device.
#include <cstring>

#include "kernels/host/packing.h"

namespace pavo::cuda {
namespace {

// The values of K blocks are put in another order instead (pack_k_row).
//
// Bytes from..from+size of a file block go to part[block * size].
struct Piece {
  int32_t from;
  int32_t size;
};

// Where the parts of weight_layout.h lie in a block of the file.
struct BlockPieces {
  int32_t block_bytes;
  Piece low, high, scale, extra;
};

constexpr BlockPieces block_pieces(int32_t type) {
  switch (type) {
    case PAVO_TYPE_F32:
      return {4, {0, 4}, {}, {}, {}};
    case PAVO_TYPE_F16:
    case PAVO_TYPE_BF16:
      return {2, {0, 2}, {}, {}, {}};
    case PAVO_TYPE_Q4_0:
      return {18, {2, 16}, {}, {0, 2}, {}};
    case PAVO_TYPE_Q4_1:
      return {20, {4, 16}, {}, {0, 4}, {}};
    case PAVO_TYPE_Q8_0:
      return {34, {2, 32}, {}, {0, 2}, {}};
    default:
      return {};
  }
}

constexpr bool pieces_agree(int32_t type) {
  const BlockParts parts = block_parts(type);
  const BlockPieces pieces = block_pieces(type);
  return parts.low == pieces.low.size && parts.high == pieces.high.size &&
         parts.scale == pieces.scale.size && parts.extra == pieces.extra.size &&
         parts.low + parts.high + parts.scale + parts.extra == pieces.block_bytes;
}
static_assert(pieces_agree(PAVO_TYPE_F32) && pieces_agree(PAVO_TYPE_F16));
static_assert(pieces_agree(PAVO_TYPE_BF16) && pieces_agree(PAVO_TYPE_Q4_0));
static_assert(pieces_agree(PAVO_TYPE_Q4_1) && pieces_agree(PAVO_TYPE_Q8_0));

void pack_part(
    const Piece& piece, int32_t block_bytes, const std::byte* src, int64_t blocks, std::byte* dst) {
  const auto size = static_cast<size_t>(piece.size);
  for (int64_t block = 0; block < blocks; ++block) {
    std::memcpy(dst + block * piece.size, src + block * block_bytes + piece.from, size);
  }
  const int64_t used = blocks * piece.size;
  std::memset(dst + used, 0, static_cast<size_t>(align_part(used) - used));
}

uint64_t read_bytes(const uint8_t* from) {
  uint64_t bytes = 0;
  std::memcpy(&bytes, from, sizeof bytes);
  return bytes;
}

// 32 values from 32 bytes, in the halves of these that `shift` tells, to 16 bytes.
void pack_nibbles(const uint8_t* from, int shift, std::byte* to) {
  constexpr uint64_t kLow = 0x0f0f0f0f0f0f0f0f;
  for (int i = 0; i < 16; i += 8) {
    const uint64_t first = (read_bytes(from + i) >> shift) & kLow;
    const uint64_t second = (read_bytes(from + 16 + i) >> shift) & kLow;
    const uint64_t both = first | second << 4;
    std::memcpy(to + i, &both, sizeof both);
  }
}

void pack_q4_k_block(const pavo_block_q4_k& block, std::byte* low, std::byte* scale) {
  for (int sub = 0; sub < 8; ++sub) {
    pack_nibbles(block.qs + sub / 2 * 32, sub % 2 * 4, low + 16 * sub);
    uint8_t pair[2] = {};
    pavo_q4_k_scale_min(block.scales, sub, &pair[0], &pair[1]);
    std::memcpy(scale + 2 * sub, pair, sizeof pair);
  }
}

// The top two bits of 32 values, at `shift` of 32 bytes, to 8 bytes.
void pack_tops(const uint8_t* from, int shift, std::byte* to) {
  for (int i = 0; i < 8; ++i) {
    const int first = i / 4 * 8 + i % 4;
    const auto top = [&](int value) { return (from[value] >> shift) & 3; };
    to[i] = static_cast<std::byte>(
        top(first) | top(first + 4) << 2 | top(first + 16) << 4 | top(first + 20) << 6);
  }
}

void pack_q6_k_block(const pavo_block_q6_k& block, std::byte* low, std::byte* high) {
  for (int sub = 0; sub < 8; ++sub) {
    const int half = sub / 4, quarter = sub % 4;
    pack_nibbles(block.ql + 64 * half + quarter % 2 * 32, quarter / 2 * 4, low + 16 * sub);
    pack_tops(block.qh + 32 * half, 2 * quarter, high + 8 * sub);
  }
}

void pack_k_row(const PackedForm& form, const std::byte* src, std::byte* dst) {
  const WeightLayout layout = weight_layout(form.type, form.columns);
  const BlockParts parts = block_parts(form.type);
  std::memset(dst, 0, static_cast<size_t>(layout.row_bytes));  // the padding
  for (int64_t i = 0; i < form.columns / parts.block_values; ++i) {
    std::byte* low = dst + i * parts.low;
    std::byte* high = dst + layout.high_offset + i * parts.high;
    std::byte* scale = dst + layout.scale_offset + i * parts.scale;
    std::byte* extra = dst + layout.extra_offset + i * parts.extra;
    if (form.type == PAVO_TYPE_Q4_K) {
      pavo_block_q4_k block;
      std::memcpy(&block, src + i * PAVO_BLOCK_BYTES_Q4_K, sizeof block);
      pack_q4_k_block(block, low, scale);
      std::memcpy(extra, &block.d, 2);
      std::memcpy(extra + 2, &block.dmin, 2);
    } else {
      pavo_block_q6_k block;
      std::memcpy(&block, src + i * PAVO_BLOCK_BYTES_Q6_K, sizeof block);
      pack_q6_k_block(block, low, high);
      std::memcpy(scale, block.scales, sizeof block.scales);
      std::memcpy(extra, &block.d, 2);
    }
  }
}

void pack_planar_row(const PackedForm& form, const std::byte* src, std::byte* dst) {
  if (form.type == PAVO_TYPE_Q4_K || form.type == PAVO_TYPE_Q6_K) {
    pack_k_row(form, src, dst);
    return;
  }
  const BlockPieces pieces = block_pieces(form.type);
  const WeightLayout layout = weight_layout(form.type, form.columns);
  const int64_t blocks = form.columns / pavo_type_block_values(form.type);
  if (pieces.low.size == pieces.block_bytes) {  // nothing is interleaved
    const auto bytes = static_cast<size_t>(form.file_row_bytes);
    std::memcpy(dst, src, bytes);
    std::memset(dst + bytes, 0, static_cast<size_t>(form.row_bytes - form.file_row_bytes));
    return;
  }
  pack_part(pieces.low, pieces.block_bytes, src, blocks, dst);
  pack_part(pieces.high, pieces.block_bytes, src, blocks, dst + layout.high_offset);
  pack_part(pieces.scale, pieces.block_bytes, src, blocks, dst + layout.scale_offset);
  pack_part(pieces.extra, pieces.block_bytes, src, blocks, dst + layout.extra_offset);
}

void pack_dense_row(const PackedForm& form, const std::byte* src, std::byte* dst) {
  for (int64_t i = 0; i < form.columns; ++i) {
    float value = 0.0f;
    uint16_t half = 0;
    if (form.type == PAVO_TYPE_F32) {
      std::memcpy(&value, src + 4 * i, sizeof value);
    } else {
      std::memcpy(&half, src + 2 * i, sizeof half);
      value = form.type == PAVO_TYPE_F16 ? pavo_f16_to_f32(half) : pavo_bf16_to_f32(half);
    }
    std::memcpy(dst + 4 * i, &value, sizeof value);
  }
}

}  // namespace

void pack_rows(const PackedForm& form, const std::byte* src, int64_t count, std::byte* dst) {
  for (int64_t row = 0; row < count; ++row) {
    const std::byte* from = src + row * form.file_row_bytes;
    std::byte* to = dst + row * form.row_bytes;
    if (form.dense) {
      pack_dense_row(form, from, to);
    } else {
      pack_planar_row(form, from, to);
    }
  }
}

}  // namespace pavo::cuda
