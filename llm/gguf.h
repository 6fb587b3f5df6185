// GGUF v2 and v3 files: typed metadata and tensors, read in place from a mapped file.
// Nothing in the file is trusted: every length is compared with the bytes that are left before it
// is used, and each error names the field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/status.h"
#include "llm/gguf_types.h"
#include "llm/mapped_file.h"
#include "llm/tensor_table.h"

namespace pavo::llm {

// One metadata value, still encoded in the file and already checked: strings end inside of it,
// bools are 0 or 1, nested arrays are whole.
struct GgufValue {
  GgufType type = GgufType::kUint8;
  GgufType element_type = GgufType::kUint8;  // arrays only
  uint64_t count = 0;                        // arrays only: elements
  std::span<const std::byte> bytes;  // numbers: as stored; strings: the text; arrays: the elements
};

struct GgufEntry {
  std::string_view key;
  GgufValue value;
};

// "uint32", "array of 3 string": what a value is, for messages and listings.
std::string describe(const GgufValue& value);

// Views and pointers handed out hold as long as the file object (moves included). Immutable, so any
// thread may read it.
class GgufFile {
 public:
  // kInvalidFile for anything wrong with the file, kUnsupported for one part of a split file.
  static Result<GgufFile> open(const std::string& path);
  // The same for bytes that the caller keeps alive.
  static Result<GgufFile> parse(std::span<const std::byte> bytes);

  uint32_t version() const { return version_; }
  uint64_t alignment() const { return alignment_; }
  // In the file's order.
  const std::vector<GgufEntry>& entries() const { return entries_; }
  const TensorTable& tensors() const { return tensors_; }
  // nullptr if there is no such key.
  const GgufValue* find(std::string_view key) const;

  // The value of a key that must be there. T is one of
  //   bool, std::string_view, int64_t (any integer type that fits), double (any float type),
  //   std::vector<std::string_view>, std::vector<int64_t>, std::vector<double> (arrays of the
  //   same).
  // Otherwise kInvalidFile with the key, the expected and the found type.
  template <typename T>
  Result<T> get(std::string_view key) const;
  // The same for a key that may be missing; a present value of the wrong type is still an error.
  template <typename T>
  Result<T> get_or(std::string_view key, T fallback) const {
    return find(key) == nullptr ? Result<T>(std::move(fallback)) : get<T>(key);
  }

 private:
  friend class GgufParser;

  MappedFile file_;
  uint32_t version_ = 0;
  uint64_t alignment_ = 0;
  std::vector<GgufEntry> entries_;
  std::unordered_map<std::string_view, size_t> index_;
  TensorTable tensors_;
};

}  // namespace pavo::llm
