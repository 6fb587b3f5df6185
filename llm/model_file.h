// Opens a model, whatever its format: a GGUF file or a Hub directory (config.json, *.safetensors).
// Families read their configuration and look tensors up by the names of the format.
#pragma once

#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "core/status.h"
#include "llm/gguf.h"
#include "llm/safetensors.h"
#include "llm/tensor_table.h"

namespace pavo::llm {

// Movable; tensors and metadata hold as long as it lives. Immutable, so any thread may read it.
class ModelSource {
 public:
  // kInvalidFile for what is no usable model, with the path in front of the message.
  static Result<ModelSource> open(const std::string& path);

  ModelSource(ModelSource&&) noexcept;
  ModelSource& operator=(ModelSource&&) noexcept;
  ~ModelSource();

  const std::string& path() const { return path_; }
  // "llama" (general.architecture) or "LlamaForCausalLM" (architectures of config.json).
  const std::string& architecture() const { return architecture_; }
  const TensorTable& tensors() const;
  // Exactly one of these two is not null.
  const GgufFile* gguf() const { return gguf_.get(); }
  const nlohmann::json* hub_config() const { return hub_config_.get(); }

 private:
  ModelSource();
  static Result<ModelSource> open_gguf(const std::string& path);
  static Result<ModelSource> open_hub(const std::string& path);

  std::string path_;
  std::string architecture_;
  std::unique_ptr<GgufFile> gguf_;
  std::unique_ptr<nlohmann::json> hub_config_;
  SafetensorsFiles hub_files_;
};

}  // namespace pavo::llm
