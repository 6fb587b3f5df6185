// The safetensors format: an 8-byte header length, a JSON header, then the tensors' bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/status.h"
#include "llm/mapped_file.h"
#include "llm/tensor_table.h"

namespace pavo::llm {

// The tensors of one file's bytes, which the caller keeps alive. Types other than F32, F16, BF16
// and I32 are listed with PAVO_TYPE_NONE. kInvalidFile names the tensor and the field.
Result<std::vector<FileTensor>> parse_safetensors(std::span<const std::byte> bytes);

// One file, or all shards of one checkpoint. Immutable, so any thread may read it.
class SafetensorsFiles {
 public:
  static Result<SafetensorsFiles> open_file(const std::string& path);
  // A Hub directory: model.safetensors.index.json with its shards, else model.safetensors.
  static Result<SafetensorsFiles> open_directory(const std::string& directory);

  const TensorTable& tensors() const { return tensors_; }

 private:
  std::vector<MappedFile> files_;
  TensorTable tensors_;
};

// Writes one F32 tensor `name` of shape [rows, columns], row-major. The file appears whole or not
// at all: it is written beside `path` and renamed. kIo with the system's reason.
Status write_safetensors_f32(
    const std::string& path,
    const std::string& name,
    int64_t rows,
    int64_t columns,
    std::span<const float> values);

}  // namespace pavo::llm
