#include "llm/model_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "llm/json_text.h"
#include "llm/mapped_file.h"
#include "llm/message.h"

namespace pavo::llm {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// What a person who gave a directory without config.json may have meant.
std::string directory_hint(const std::string& path) {
  std::error_code error;
  fs::directory_iterator entry(path, error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".gguf") {
      return "; to open a GGUF file of this directory, give the file's own path, as " +
             quote(entry->path().string());
    }
  }
  return "; expected a GGUF file, or a directory with config.json and *.safetensors";
}

}  // namespace

ModelSource::ModelSource() = default;
ModelSource::ModelSource(ModelSource&&) noexcept = default;
ModelSource& ModelSource::operator=(ModelSource&&) noexcept = default;
ModelSource::~ModelSource() = default;

const TensorTable& ModelSource::tensors() const {
  return gguf_ != nullptr ? gguf_->tensors() : hub_files_.tensors();
}

Result<ModelSource> ModelSource::open(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status)) {
    return Status(
        Code::kInvalidFile,
        quote(path) + ": " + error.message() + "; expected a GGUF file, or a Hub directory");
  }
  const bool is_directory = fs::is_directory(status);
  Result<ModelSource> source = is_directory ? open_hub(path) : open_gguf(path);
  if (!source.ok()) {
    return source.status().with_context(quote(path));
  }
  source->path_ = path;
  return source;
}

Result<ModelSource> ModelSource::open_gguf(const std::string& path) {
  if (fs::path(path).extension() == ".safetensors") {
    return Status(
        Code::kInvalidFile,
        "expected a GGUF file or a directory, found a safetensors file; give its directory, which "
        "also holds config.json");
  }
  ModelSource source;
  PAVO_ASSIGN_OR_RETURN(GgufFile file, GgufFile::open(path));
  PAVO_ASSIGN_OR_RETURN(source.architecture_, file.get<std::string_view>("general.architecture"));
  source.gguf_ = std::make_unique<GgufFile>(std::move(file));
  return source;
}

Result<ModelSource> ModelSource::open_hub(const std::string& path) {
  const std::string config_path = path + "/config.json";
  std::error_code error;
  if (!fs::exists(config_path, error)) {
    return Status(Code::kInvalidFile, "there is no config.json" + directory_hint(path));
  }
  ModelSource source;
  PAVO_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(config_path));
  json config;
  PAVO_RETURN_IF_ERROR(parse_json_object(file.bytes(), "config.json", &config));
  const auto names = config.find("architectures");
  if (names == config.end() || !names->is_array() || names->size() != 1 ||
      !names->front().is_string()) {
    return Status(
        Code::kInvalidFile, "config.json: architectures: expected an array of one string");
  }
  source.architecture_ = names->front().get<std::string>();
  source.hub_config_ = std::make_unique<json>(std::move(config));
  PAVO_ASSIGN_OR_RETURN(source.hub_files_, SafetensorsFiles::open_directory(path));
  return source;
}

}  // namespace pavo::llm
