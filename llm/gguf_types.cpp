#include "llm/gguf_types.h"

#include "pavo/quant.h"

namespace pavo::llm {
namespace {

// Types that Pavo runs take their block from quant.h, so the two cannot disagree.
#define PAVO_SAME(id, name) \
  { #name, id, PAVO_TYPE_##name, PAVO_BLOCK_VALUES_##name, PAVO_BLOCK_BYTES_##name }
// Known to be in files, sized so that offsets can be checked, not runnable.
#define PAVO_NAMED(id, name, values, bytes) \
  { #name, id, PAVO_TYPE_NONE, values, bytes }

constexpr GgmlType kGgmlTypes[] = {
    PAVO_SAME(0, F32),
    PAVO_SAME(1, F16),
    PAVO_SAME(2, Q4_0),
    PAVO_SAME(3, Q4_1),
    PAVO_SAME(6, Q5_0),
    PAVO_SAME(7, Q5_1),
    PAVO_SAME(8, Q8_0),
    PAVO_NAMED(9, Q8_1, 32, 36),
    PAVO_SAME(10, Q2_K),
    PAVO_SAME(11, Q3_K),
    PAVO_SAME(12, Q4_K),
    PAVO_SAME(13, Q5_K),
    PAVO_SAME(14, Q6_K),
    PAVO_NAMED(15, Q8_K, 256, 292),
    PAVO_SAME(16, IQ2_XXS),
    PAVO_SAME(17, IQ2_XS),
    PAVO_SAME(18, IQ3_XXS),
    PAVO_SAME(19, IQ1_S),
    PAVO_SAME(20, IQ4_NL),
    PAVO_SAME(21, IQ3_S),
    PAVO_SAME(22, IQ2_S),
    PAVO_SAME(23, IQ4_XS),
    PAVO_NAMED(24, I8, 1, 1),
    PAVO_NAMED(25, I16, 1, 2),
    PAVO_SAME(26, I32),
    PAVO_NAMED(27, I64, 1, 8),
    PAVO_NAMED(28, F64, 1, 8),
    PAVO_SAME(29, IQ1_M),
    PAVO_SAME(30, BF16),
    PAVO_NAMED(34, TQ1_0, 256, 54),
    PAVO_NAMED(35, TQ2_0, 256, 66),
    PAVO_SAME(39, MXFP4),
    PAVO_NAMED(40, NVFP4, 64, 36),
    PAVO_NAMED(41, Q1_0, 128, 18),
    PAVO_SAME(133, Q6_0),  // ik_llama.cpp's numbering
};
#undef PAVO_SAME
#undef PAVO_NAMED

}  // namespace

const char* gguf_type_name(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
      return "uint8";
    case GgufType::kInt8:
      return "int8";
    case GgufType::kUint16:
      return "uint16";
    case GgufType::kInt16:
      return "int16";
    case GgufType::kUint32:
      return "uint32";
    case GgufType::kInt32:
      return "int32";
    case GgufType::kFloat32:
      return "float32";
    case GgufType::kBool:
      return "bool";
    case GgufType::kString:
      return "string";
    case GgufType::kArray:
      return "array";
    case GgufType::kUint64:
      return "uint64";
    case GgufType::kInt64:
      return "int64";
    case GgufType::kFloat64:
      return "float64";
  }
  return "?";
}

uint32_t gguf_type_bytes(GgufType type) {
  switch (type) {
    case GgufType::kUint8:
    case GgufType::kInt8:
    case GgufType::kBool:
      return 1;
    case GgufType::kUint16:
    case GgufType::kInt16:
      return 2;
    case GgufType::kUint32:
    case GgufType::kInt32:
    case GgufType::kFloat32:
      return 4;
    case GgufType::kUint64:
    case GgufType::kInt64:
    case GgufType::kFloat64:
      return 8;
    case GgufType::kString:
    case GgufType::kArray:
      break;
  }
  return 0;
}

const GgmlType* find_ggml_type(uint32_t id) {
  for (const GgmlType& type : kGgmlTypes) {
    if (type.id == id) {
      return &type;
    }
  }
  return nullptr;
}

}  // namespace pavo::llm
