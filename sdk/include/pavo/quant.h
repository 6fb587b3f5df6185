/* Element types, weight blocks and K/V cache pages, byte by byte.
 *
 * Shared by the model loader, the CPU plugin, the CUDA plugins and third parties, so it is plain
 * C11 that C++17 and CUDA accept. Whatever is stored (weights in files, K/V pages) is defined here;
 * what a plugin packs for itself is its own business.
 *
 * Source of the weight block layouts: the public GGUF/ggml format (facts only). The page layouts
 * are Pavo's own. Little endian throughout.
 */
#ifndef PAVO_QUANT_H_
#define PAVO_QUANT_H_

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__CUDACC__)
#define PAVO_QUANT_FN static __host__ __device__ inline
#else
#define PAVO_QUANT_FN static inline
#endif

/* ---- Element types --------------------------------------------------------------------------
 * X(NAME, id, text, values per block, bytes per block). Ids are Pavo's, stable, never reused. A row
 * of a block type holds a whole number of blocks. q8_kv exists only inside K/V pages (0 bytes
 * here).
 */
#define PAVO_TYPE_LIST(X)            \
  X(F32, 0, "f32", 1, 4)             \
  X(F16, 1, "f16", 1, 2)             \
  X(BF16, 2, "bf16", 1, 2)           \
  X(I32, 3, "i32", 1, 4)             \
  X(Q4_0, 8, "q4_0", 32, 18)         \
  X(Q4_1, 9, "q4_1", 32, 20)         \
  X(Q5_0, 10, "q5_0", 32, 22)        \
  X(Q5_1, 11, "q5_1", 32, 24)        \
  X(Q6_0, 12, "q6_0", 32, 26)        \
  X(Q8_0, 13, "q8_0", 32, 34)        \
  X(Q2_K, 16, "q2_k", 256, 84)       \
  X(Q3_K, 17, "q3_k", 256, 110)      \
  X(Q4_K, 18, "q4_k", 256, 144)      \
  X(Q5_K, 19, "q5_k", 256, 176)      \
  X(Q6_K, 20, "q6_k", 256, 210)      \
  X(IQ1_S, 24, "iq1_s", 256, 50)     \
  X(IQ1_M, 25, "iq1_m", 256, 56)     \
  X(IQ2_XXS, 26, "iq2_xxs", 256, 66) \
  X(IQ2_XS, 27, "iq2_xs", 256, 74)   \
  X(IQ2_S, 28, "iq2_s", 256, 82)     \
  X(IQ3_XXS, 29, "iq3_xxs", 256, 98) \
  X(IQ3_S, 30, "iq3_s", 256, 110)    \
  X(IQ4_NL, 31, "iq4_nl", 32, 18)    \
  X(IQ4_XS, 32, "iq4_xs", 256, 136)  \
  X(MXFP4, 33, "mxfp4", 32, 17)      \
  X(Q8_KV, 40, "q8_kv", 1, 0)

#define PAVO_TYPE_ID(name, id, text, values, bytes) PAVO_TYPE_##name = id,
#define PAVO_TYPE_VALUES(name, id, text, values, bytes) PAVO_BLOCK_VALUES_##name = values,
#define PAVO_TYPE_BYTES(name, id, text, values, bytes) PAVO_BLOCK_BYTES_##name = bytes,
enum { PAVO_TYPE_LIST(PAVO_TYPE_ID) };
enum { PAVO_TYPE_LIST(PAVO_TYPE_VALUES) };
enum { PAVO_TYPE_LIST(PAVO_TYPE_BYTES) };
#undef PAVO_TYPE_ID
#undef PAVO_TYPE_VALUES
#undef PAVO_TYPE_BYTES
#define PAVO_TYPE_NONE (-1)

/* Values in one block; 0 for an unknown type. */
PAVO_QUANT_FN int32_t pavo_type_block_values(int32_t type) {
  switch (type) {
#define PAVO_TYPE_CASE(name, id, text, values, bytes) \
  case id:                                            \
    return values;
    PAVO_TYPE_LIST(PAVO_TYPE_CASE)
#undef PAVO_TYPE_CASE
    default:
      return 0;
  }
}

/* Bytes of one block; 0 for an unknown type and for q8_kv, which has no row layout. */
PAVO_QUANT_FN int32_t pavo_type_block_bytes(int32_t type) {
  switch (type) {
#define PAVO_TYPE_CASE(name, id, text, values, bytes) \
  case id:                                            \
    return bytes;
    PAVO_TYPE_LIST(PAVO_TYPE_CASE)
#undef PAVO_TYPE_CASE
    default:
      return 0;
  }
}

/* "q4_k"; "?" for an unknown type. Static storage. */
PAVO_QUANT_FN const char* pavo_type_name(int32_t type) {
  switch (type) {
#define PAVO_TYPE_CASE(name, id, text, values, bytes) \
  case id:                                            \
    return text;
    PAVO_TYPE_LIST(PAVO_TYPE_CASE)
#undef PAVO_TYPE_CASE
    default:
      return "?";
  }
}

/* Bytes of one row of `count` values; -1 if count is negative or not a whole number of blocks, or
 * the type has no row layout. Cannot overflow for count < 2^55. */
PAVO_QUANT_FN int64_t pavo_type_row_bytes(int32_t type, int64_t count) {
  const int64_t values = pavo_type_block_values(type);
  const int64_t bytes = pavo_type_block_bytes(type);
  if (values == 0 || bytes == 0 || count < 0 || count >= ((int64_t)1 << 55) ||
      count % values != 0) {
    return -1;
  }
  return count / values * bytes;
}

/* ---- f16 and bf16 bit patterns --------------------------------------------------------------
 * Held as uint16_t. Conversions round to nearest, ties to even; NaN stays NaN. */
PAVO_QUANT_FN uint32_t pavo_f32_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

PAVO_QUANT_FN float pavo_f32_from_bits(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

PAVO_QUANT_FN float pavo_f16_to_f32(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1fu;
  const uint32_t mantissa = half & 0x3ffu;
  if (exponent == 0) { /* zero or subnormal: mantissa * 2^-24, exact in f32 */
    const float magnitude = (float)mantissa * 5.9604644775390625e-8f;
    return pavo_f32_from_bits(sign | pavo_f32_bits(magnitude));
  }
  if (exponent == 31) {
    return pavo_f32_from_bits(sign | 0x7f800000u | (mantissa << 13));
  }
  return pavo_f32_from_bits(sign | ((exponent + 112) << 23) | (mantissa << 13));
}

PAVO_QUANT_FN uint16_t pavo_f32_to_f16(float value) {
  const uint32_t bits = pavo_f32_bits(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude >= 0x7f800000u) { /* inf, NaN (kept quiet) */
    return (uint16_t)(sign | 0x7c00u | (magnitude > 0x7f800000u ? 0x200u : 0u));
  }
  if (magnitude >= 0x477ff000u) { /* rounds to 65536 or more */
    return (uint16_t)(sign | 0x7c00u);
  }
  if (magnitude < 0x38800000u) { /* below 2^-14: subnormal, unit 2^-24 */
    const float scaled = pavo_f32_from_bits(magnitude) * 16777216.0f; /* exact: a power of two */
    return (uint16_t)(sign | (uint32_t)rintf(scaled));
  }
  /* Re-bias, then add half a unit less one plus the lowest kept bit: ties to even. */
  const uint32_t rebased = magnitude - 0x38000000u;
  return (uint16_t)(sign | ((rebased + 0xfffu + ((rebased >> 13) & 1u)) >> 13));
}

PAVO_QUANT_FN float pavo_bf16_to_f32(uint16_t value) {
  return pavo_f32_from_bits((uint32_t)value << 16);
}

PAVO_QUANT_FN uint16_t pavo_f32_to_bf16(float value) {
  const uint32_t bits = pavo_f32_bits(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) {
    return (uint16_t)((bits >> 16) | 0x40u);
  }
  return (uint16_t)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/* ---- Weight blocks ---------------------------------------------------------------------------
 * d, m, dmin are f16 bit patterns. Value index i runs over one block.
 */
#define PAVO_QK 32
#define PAVO_QK_K 256

/* q4_0: value[i] = d * (nibble[i] - 8); nibble[i] = low half of qs[i] for i < 16, high half of
 * qs[i - 16] after that. */
typedef struct pavo_block_q4_0 {
  uint16_t d;
  uint8_t qs[16];
} pavo_block_q4_0;

/* q4_1: value[i] = d * nibble[i] + m; nibbles as in q4_0. */
typedef struct pavo_block_q4_1 {
  uint16_t d;
  uint16_t m;
  uint8_t qs[16];
} pavo_block_q4_1;

/* q8_0: value[i] = d * qs[i]. */
typedef struct pavo_block_q8_0 {
  uint16_t d;
  int8_t qs[32];
} pavo_block_q8_0;

/* q4_k: 8 sub-blocks of 32; value[i] = d * sc[s] * nibble[i] - dmin * mn[s], s = i / 32.
 * Nibbles: each pair of sub-blocks (2p, 2p+1) shares qs[32p .. 32p+31], low halves first.
 * scales packs 8 six-bit sc and 8 six-bit mn in 12 bytes, see pavo_q4_k_scale_min. */
typedef struct pavo_block_q4_k {
  uint16_t d;
  uint16_t dmin;
  uint8_t scales[12];
  uint8_t qs[128];
} pavo_block_q4_k;

/* q6_k: 16 sub-blocks of 16; value[i] = d * scales[i / 16] * (six-bit q[i] - 32).
 * Per half h of 128 values and l < 32: the four values l, l+32, l+64, l+96 take their low four bits
 * from ql[64h + l] low, ql[64h + 32 + l] low, ql[64h + l] high, ql[64h + 32 + l] high, and their
 * high two bits from qh[32h + l] bits 0-1, 2-3, 4-5, 6-7. */
typedef struct pavo_block_q6_k {
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  uint16_t d;
} pavo_block_q6_k;

/* Scale and minimum of sub-block s (0..7) of a q4_k or q5_k block. The first four of each lie in
 * the low six bits of bytes 0-3 and 4-7; of the last four, the low four bits are the halves of
 * bytes 8-11 and the high two bits are the top bits of bytes 0-7. */
PAVO_QUANT_FN void pavo_q4_k_scale_min(
    const uint8_t* scales, int32_t s, uint8_t* scale, uint8_t* minimum) {
  if (s < 4) {
    *scale = scales[s] & 63;
    *minimum = scales[s + 4] & 63;
  } else {
    *scale = (uint8_t)((scales[s + 4] & 15) | ((scales[s - 4] >> 6) << 4));
    *minimum = (uint8_t)((scales[s + 4] >> 4) | ((scales[s] >> 6) << 4));
  }
}

/* ---- K/V cache pages -------------------------------------------------------------------------
 * A page holds PAVO_KV_PAGE_ROWS rows (tokens) of one layer, K and V in pools of their own:
 *   pool  = [page][head][head_bytes]
 * f32, f16, bf16: head_bytes = [row][head_dim], dense.
 * Quantised types are planar: inside a head of a page first the low quants of all rows, then the
 * high bits (5 and 6-bit types), then the scales, then the minima, each part 16-byte aligned and
 * each [row][...]. A row is padded with zeros to whole blocks of 32 values, so any head_dim works.
 *   low quants  q8_0, q8_kv: int8 per value; the others: nibbles, value i and i + 16 of a block in
 *               the low and high half of byte i, 16 bytes a block
 *   high bits   q5_x: one uint32 a block, bit i for value i; q6_0: two bits a value, four values a
 *               byte (value 4j + k in bits 2k of byte j)
 *   scales      f16 a block; q8_kv: one f32 a row
 *   minima      q4_1, q5_1: f16 a block
 */
#define PAVO_KV_PAGE_ROWS 64

/* Offsets are bytes from the start of one head in one page. A part that a type lacks has row_bytes
 * 0 and the offset where it would be. */
typedef struct pavo_kv_layout {
  int64_t low_offset, low_row_bytes;
  int64_t high_offset, high_row_bytes;
  int64_t scale_offset, scale_row_bytes;
  int64_t min_offset, min_row_bytes;
  int64_t head_bytes; /* one head of one page, a multiple of 16 */
} pavo_kv_layout;

PAVO_QUANT_FN int64_t pavo_align_up(int64_t value, int64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

/* Fills *layout; returns 0, or -1 if `type` is no cache type or head_dim is not in 1..65536. */
PAVO_QUANT_FN int32_t pavo_kv_layout_init(int32_t type, int64_t head_dim, pavo_kv_layout* layout) {
  if (head_dim < 1 || head_dim > 65536) {
    return -1;
  }
  const int64_t blocks = (head_dim + PAVO_QK - 1) / PAVO_QK;
  int64_t low = 0, high = 0, scale = 2 * blocks, minimum = 0;
  switch (type) {
    case PAVO_TYPE_F32:
      low = 4 * head_dim, scale = 0;
      break;
    case PAVO_TYPE_F16:
    case PAVO_TYPE_BF16:
      low = 2 * head_dim, scale = 0;
      break;
    case PAVO_TYPE_Q8_0:
      low = 32 * blocks;
      break;
    case PAVO_TYPE_Q8_KV:
      low = 32 * blocks, scale = 4;
      break;
    case PAVO_TYPE_Q4_0:
    case PAVO_TYPE_IQ4_NL:
      low = 16 * blocks;
      break;
    case PAVO_TYPE_Q4_1:
      low = 16 * blocks, minimum = 2 * blocks;
      break;
    case PAVO_TYPE_Q5_0:
      low = 16 * blocks, high = 4 * blocks;
      break;
    case PAVO_TYPE_Q5_1:
      low = 16 * blocks, high = 4 * blocks, minimum = 2 * blocks;
      break;
    case PAVO_TYPE_Q6_0:
      low = 16 * blocks, high = 8 * blocks;
      break;
    default:
      return -1;
  }
  layout->low_offset = 0;
  layout->low_row_bytes = low;
  layout->high_offset = pavo_align_up(PAVO_KV_PAGE_ROWS * low, 16);
  layout->high_row_bytes = high;
  layout->scale_offset = pavo_align_up(layout->high_offset + PAVO_KV_PAGE_ROWS * high, 16);
  layout->scale_row_bytes = scale;
  layout->min_offset = pavo_align_up(layout->scale_offset + PAVO_KV_PAGE_ROWS * scale, 16);
  layout->min_row_bytes = minimum;
  layout->head_bytes = pavo_align_up(layout->min_offset + PAVO_KV_PAGE_ROWS * minimum, 16);
  return 0;
}

/* ---- Rounding of the cache types --------------------------------------------------------------
 * Every kv_store writes the bytes that these functions give, on every device. They use only f32
 * operations that IEEE 754 fixes (no fused multiply-add can arise: a product is rounded by rintf or
 * by a conversion before anything is added). */

/* Scale of one q8_0 block whose largest magnitude is `amax`; *inverse is what values are multiplied
 * with before rintf. The stored scale is f16, the quants are rounded against the f32 one. A block
 * whose largest value overflows f16 (amax > 127 * 65504) saturates to the largest finite scale. */
PAVO_QUANT_FN uint16_t pavo_q8_0_scale(float amax, float* inverse) {
  const float largest = 127.0f * 65504.0f;
  if (amax > largest) {
    amax = largest;
  }
  *inverse = amax > 0.0f ? 127.0f / amax : 0.0f;
  return pavo_f32_to_f16(amax / 127.0f);
}

/* One q8_0 quant: nearest integer, ties to even, in -127..127. NaN becomes 0. */
PAVO_QUANT_FN int8_t pavo_q8_0_quant(float value, float inverse) {
  const float scaled = rintf(value * inverse);
  if (!(scaled > -127.0f)) {
    return scaled <= -127.0f ? (int8_t)-127 : (int8_t)0;
  }
  return scaled < 127.0f ? (int8_t)scaled : (int8_t)127;
}

#endif /* PAVO_QUANT_H_ */
