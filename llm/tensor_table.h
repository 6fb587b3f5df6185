// Tensors of a model file by name, the same for every file format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "pavo/quant.h"

#include "core/status.h"

namespace pavo::llm {

// One tensor where it lies in the mapped file.
struct FileTensor {
  std::string name;
  int32_t type = PAVO_TYPE_NONE;  // PAVO_TYPE_*; PAVO_TYPE_NONE if Pavo has no such type
  std::string type_name;          // as the file's format calls it, for people
  std::vector<int64_t> shape;     // outermost first; the last dimension is one row
  // May be unaligned (safetensors promises nothing): read elements through memcpy.
  const std::byte* data = nullptr;
  uint64_t size_bytes = 0;  // 0 if the type's size is not known
};

// Immutable after make(), so any thread may read it.
class TensorTable {
 public:
  // Refuses duplicate names and data ranges that overlap; `format` starts the messages ("gguf").
  static Result<TensorTable> make(std::vector<FileTensor> tensors, std::string_view format);

  TensorTable() = default;
  TensorTable(TensorTable&&) = default;
  TensorTable& operator=(TensorTable&&) = default;
  TensorTable(const TensorTable&) = delete;  // the index refers to the names
  TensorTable& operator=(const TensorTable&) = delete;
  ~TensorTable() = default;

  // In the file's order.
  const std::vector<FileTensor>& all() const { return tensors_; }
  // nullptr if there is none. The pointer holds as long as the table, moves included.
  const FileTensor* find(std::string_view name) const;

 private:
  std::vector<FileTensor> tensors_;
  std::unordered_map<std::string_view, size_t> index_;
};

}  // namespace pavo::llm
