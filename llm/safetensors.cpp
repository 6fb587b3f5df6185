#include "llm/safetensors.h"

#include <algorithm>
#include <map>
#include <utility>

#include <nlohmann/json.hpp>
#include <sys/stat.h>

#include "llm/byte_reader.h"
#include "llm/json_text.h"
#include "llm/message.h"

namespace pavo::llm {
namespace {

using nlohmann::json;

constexpr size_t kMaxDimensions = 8;
constexpr uint64_t kMaxValues = uint64_t{1} << 53;
constexpr const char* kIndexName = "model.safetensors.index.json";
constexpr const char* kSingleName = "model.safetensors";

struct ElementType {
  const char* name;
  int32_t pavo_type;
  uint32_t bytes;
};
constexpr ElementType kElementTypes[] = {
    {"F32", PAVO_TYPE_F32, 4},
    {"F16", PAVO_TYPE_F16, 2},
    {"BF16", PAVO_TYPE_BF16, 2},
    {"I32", PAVO_TYPE_I32, 4},
    {"F64", PAVO_TYPE_NONE, 8},
    {"I64", PAVO_TYPE_NONE, 8},
    {"I16", PAVO_TYPE_NONE, 2},
    {"I8", PAVO_TYPE_NONE, 1},
    {"U64", PAVO_TYPE_NONE, 8},
    {"U32", PAVO_TYPE_NONE, 4},
    {"U16", PAVO_TYPE_NONE, 2},
    {"U8", PAVO_TYPE_NONE, 1},
    {"BOOL", PAVO_TYPE_NONE, 1},
    {"F8_E4M3", PAVO_TYPE_NONE, 1},
    {"F8_E5M2", PAVO_TYPE_NONE, 1},
    {"F8_E8M0", PAVO_TYPE_NONE, 1},
};

Status invalid(const std::string& message) {
  return {Code::kInvalidFile, "safetensors: " + message};
}

// The member `name` of an object, or nullptr.
const json* member(const json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() ? nullptr : &*found;
}

Status read_shape(const std::string& field, const json& entry, FileTensor* tensor) {
  const json* shape = member(entry, "shape");
  if (shape == nullptr || !shape->is_array() || shape->size() > kMaxDimensions) {
    return invalid(concat(field, ": shape: expected an array of up to ", kMaxDimensions, " sizes"));
  }
  uint64_t values = 1;
  for (const json& item : *shape) {
    const uint64_t length = item.is_number_unsigned() ? item.get<uint64_t>() : UINT64_MAX;
    if (length > kMaxValues / std::max<uint64_t>(values, 1)) {
      return invalid(
          concat(field, ": shape: expected sizes within the file, found ", quote(item.dump())));
    }
    values *= length;
    tensor->shape.push_back(static_cast<int64_t>(length));
  }
  return {};
}

Status read_type(const std::string& field, const json& entry, FileTensor* tensor) {
  const json* dtype = member(entry, "dtype");
  if (dtype == nullptr || !dtype->is_string()) {
    return invalid(field + ": dtype: expected a string");
  }
  tensor->type_name = dtype->get_ref<const std::string&>();
  for (const ElementType& type : kElementTypes) {
    if (tensor->type_name == type.name) {
      tensor->type = type.pavo_type;
      tensor->size_bytes = type.bytes;
      for (const int64_t length : tensor->shape) {
        tensor->size_bytes *= static_cast<uint64_t>(length);
      }
      return {};
    }
  }
  tensor->size_bytes = UINT64_MAX;  // unknown: whatever the offsets say
  return {};
}

Status read_data(
    const std::string& field,
    const json& entry,
    std::span<const std::byte> data,
    FileTensor* tensor) {
  const json* offsets = member(entry, "data_offsets");
  if (offsets == nullptr || !offsets->is_array() || offsets->size() != 2 ||
      !(*offsets)[0].is_number_unsigned() || !(*offsets)[1].is_number_unsigned()) {
    return invalid(field + ": data_offsets: expected two sizes");
  }
  const auto begin = (*offsets)[0].get<uint64_t>();
  const auto end = (*offsets)[1].get<uint64_t>();
  if (begin > end || end > data.size()) {
    return invalid(concat(
        field,
        ": data_offsets: expected a range within ",
        data.size(),
        " data bytes, found ",
        begin,
        " to ",
        end,
        "; the download may be incomplete"));
  }
  if (tensor->size_bytes == UINT64_MAX) {
    tensor->size_bytes = end - begin;
  } else if (tensor->size_bytes != end - begin) {
    return invalid(concat(
        field,
        ": expected ",
        tensor->size_bytes,
        " bytes for ",
        tensor->type_name,
        " ",
        shape_text(tensor->shape),
        ", found data_offsets of ",
        end - begin));
  }
  tensor->data = data.data() + begin;
  return {};
}

bool exists(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0;
}

// The file of each tensor, as the index says, checked to be plain names.
Result<std::map<std::string, std::string>> read_index(const std::string& path) {
  PAVO_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::open(path));
  json index;
  PAVO_RETURN_IF_ERROR(parse_json_object(file.bytes(), kIndexName, &index));
  const json* weight_map = member(index, "weight_map");
  if (weight_map == nullptr || !weight_map->is_object() || weight_map->empty()) {
    return Status(
        Code::kInvalidFile,
        concat(kIndexName, ": weight_map: expected an object of tensor and file names"));
  }
  std::map<std::string, std::string> files;
  for (const auto& item : weight_map->items()) {
    const std::string name =
        item.value().is_string() ? item.value().get<std::string>() : std::string();
    // A path would let an index reach files outside of its directory.
    if (name.empty() || name[0] == '.' ||
        name.find_first_of(std::string("/\\\0", 3)) != name.npos) {
      return Status(
          Code::kInvalidFile,
          concat(
              kIndexName,
              ": weight_map: ",
              quote(item.key()),
              ": expected the name of a file in the same directory, found ",
              quote(item.value().dump())));
    }
    files[item.key()] = name;
  }
  return files;
}

}  // namespace

Result<std::vector<FileTensor>> parse_safetensors(std::span<const std::byte> bytes) {
  ByteReader reader(bytes);
  uint64_t header_bytes = 0;
  std::span<const std::byte> header_text;
  if (!reader.read(&header_bytes)) {
    return invalid(
        concat("header length: expected 8 bytes, found a file of ", reader.size(), " bytes"));
  }
  if (!reader.take(header_bytes, &header_text)) {
    return invalid(concat(
        "header length: expected at most ",
        reader.left(),
        ", found ",
        header_bytes,
        "; this is no safetensors file or the download is incomplete"));
  }
  json header;
  PAVO_RETURN_IF_ERROR(parse_json_object(header_text, "safetensors: header", &header));
  const std::span<const std::byte> data = bytes.subspan(reader.position());
  std::vector<FileTensor> tensors;
  for (const auto& item : header.items()) {
    if (item.key() == "__metadata__") {
      continue;
    }
    const std::string field = "tensor " + quote(item.key());
    if (!item.value().is_object()) {
      return invalid(concat(field, ": expected an object, found ", item.value().type_name()));
    }
    FileTensor tensor;
    tensor.name = item.key();
    PAVO_RETURN_IF_ERROR(read_shape(field, item.value(), &tensor));
    PAVO_RETURN_IF_ERROR(read_type(field, item.value(), &tensor));
    PAVO_RETURN_IF_ERROR(read_data(field, item.value(), data, &tensor));
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<SafetensorsFiles> SafetensorsFiles::open_file(const std::string& path) {
  SafetensorsFiles out;
  PAVO_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  PAVO_ASSIGN_OR_RETURN(std::vector<FileTensor> tensors, parse_safetensors(file.bytes()));
  PAVO_ASSIGN_OR_RETURN(out.tensors_, TensorTable::make(std::move(tensors), "safetensors"));
  out.files_.push_back(std::move(file));
  return out;
}

Result<SafetensorsFiles> SafetensorsFiles::open_directory(const std::string& directory) {
  const std::string index_path = directory + "/" + kIndexName;
  if (!exists(index_path)) {
    return open_file(directory + "/" + kSingleName);
  }
  using FileNames = std::map<std::string, std::string>;
  PAVO_ASSIGN_OR_RETURN(const FileNames file_of, read_index(index_path));
  SafetensorsFiles out;
  std::map<std::string, size_t> opened;
  for (const auto& [tensor, name] : file_of) {
    opened.emplace(name, 0);
  }
  std::vector<FileTensor> all;
  for (const auto& [name, unused] : opened) {
    PAVO_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(concat(directory, "/", name)));
    auto tensors = parse_safetensors(file.bytes());
    if (!tensors.ok()) {
      return tensors.status().with_context(quote(name));
    }
    for (FileTensor& tensor : *tensors) {
      const auto place = file_of.find(tensor.name);
      // A tensor that the index places elsewhere (or nowhere) is not part of the checkpoint.
      if (place != file_of.end() && place->second == name) {
        all.push_back(std::move(tensor));
      }
    }
    out.files_.push_back(std::move(file));
  }
  PAVO_ASSIGN_OR_RETURN(out.tensors_, TensorTable::make(std::move(all), "safetensors"));
  for (const auto& [tensor, name] : file_of) {
    if (out.tensors_.find(tensor) == nullptr) {
      return invalid(concat(
          "tensor ", quote(tensor), ": expected in ", quote(name), " by the index, not found"));
    }
  }
  return out;
}

}  // namespace pavo::llm
