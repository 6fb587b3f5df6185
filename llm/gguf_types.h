// The ids that GGUF files use: metadata value types and tensor element types.
// Facts from the public GGUF specification and ggml's type list.
#pragma once

#include <cstdint>

namespace pavo::llm {

enum class GgufType : uint32_t {
  kUint8 = 0,
  kInt8 = 1,
  kUint16 = 2,
  kInt16 = 3,
  kUint32 = 4,
  kInt32 = 5,
  kFloat32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kUint64 = 10,
  kInt64 = 11,
  kFloat64 = 12,
};

// "uint32"; "?" for a number that is no type.
const char* gguf_type_name(GgufType type);
// Bytes of one number or bool; 0 for strings, arrays and unknown types.
uint32_t gguf_type_bytes(GgufType type);

// A tensor element type by its id in the file.
struct GgmlType {
  const char* name;
  uint32_t id;
  int32_t pavo_type;  // PAVO_TYPE_NONE if Pavo cannot run it
  uint32_t block_values;
  uint32_t block_bytes;
};

// nullptr for an id that no known writer uses.
const GgmlType* find_ggml_type(uint32_t id);

}  // namespace pavo::llm
