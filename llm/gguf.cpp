#include "llm/gguf.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "llm/byte_reader.h"
#include "llm/message.h"

namespace pavo::llm {
namespace {

constexpr uint64_t kDefaultAlignment = 32;
constexpr uint64_t kMaxAlignment = 1 << 20;
constexpr uint64_t kMaxNameBytes = 65535;  // the specification's limit for keys
constexpr uint32_t kMaxDimensions = 8;     // files use up to 4
constexpr int kMaxArrayDepth = 8;
// Fewest bytes that an entry can have: lengths, type, one byte of name and of value.
constexpr uint64_t kMinEntryBytes = 8 + 1 + 4 + 1;
constexpr uint64_t kMinTensorBytes = 8 + 1 + 4 + 8 + 4 + 8;
constexpr const char* kCutFile = "; the download may be incomplete";

Status invalid(const std::string& message) {
  return {Code::kInvalidFile, "gguf: " + message};
}

std::string as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

// Walks the file once, front to back, and fills a GgufFile.
class GgufParser {
 public:
  explicit GgufParser(std::span<const std::byte> bytes) : reader_(bytes) {}

  Result<GgufFile> parse() {
    PAVO_RETURN_IF_ERROR(read_header());
    for (uint64_t i = 0; i < entry_count_; ++i) {
      PAVO_RETURN_IF_ERROR(read_entry(i));
    }
    PAVO_RETURN_IF_ERROR(refuse_split());
    PAVO_RETURN_IF_ERROR(read_alignment());
    for (uint64_t i = 0; i < tensor_count_; ++i) {
      PAVO_RETURN_IF_ERROR(read_tensor(i));
    }
    PAVO_RETURN_IF_ERROR(place_tensors());
    PAVO_ASSIGN_OR_RETURN(file_.tensors_, TensorTable::make(std::move(tensors_), "gguf"));
    return std::move(file_);
  }

 private:
  Status ends_early(const std::string& field) const {
    return invalid(concat(field, " ends after the file's ", reader_.size(), " bytes", kCutFile));
  }

  Status read_header();
  Status read_name(const std::string& field, std::string_view* name);
  Status read_entry(uint64_t ordinal);
  Status read_value(const std::string& field, GgufType type, GgufValue* value);
  Status read_string(const std::string& field, GgufValue* value);
  Status read_array(const std::string& field, GgufValue* value);
  // The elements of an array, which may be arrays themselves.
  Status skip_elements(const std::string& field, GgufType type, uint64_t count, int depth);
  Status read_array_head(const std::string& field, GgufType* type, uint64_t* count);
  Status refuse_split() const;
  Status read_alignment();
  Status read_tensor(uint64_t ordinal);
  Status read_shape(const std::string& field, FileTensor* tensor);
  Status read_type(const std::string& field, FileTensor* tensor);
  Status place_tensors();

  ByteReader reader_;
  GgufFile file_;
  uint64_t entry_count_ = 0;
  uint64_t tensor_count_ = 0;
  std::vector<FileTensor> tensors_;
  std::vector<uint64_t> offsets_;
};

Status GgufParser::read_header() {
  std::span<const std::byte> magic;
  if (!reader_.take(4, &magic) || as_text(magic) != "GGUF") {
    return invalid(concat(
        "magic: expected 'GGUF', found ", quote(as_text(magic)), "; this is no GGUF model file"));
  }
  uint32_t version = 0;
  if (!reader_.read(&version)) {
    return ends_early("version");
  }
  // A version is a small number, so one with only high bytes set is one read backwards.
  if ((version & 0xffff) == 0 && version != 0) {
    return invalid("byte order: expected little-endian, found a big-endian file; convert it");
  }
  if (version < 2 || version > 3) {
    return invalid(concat(
        "version: expected 2 or 3, found ",
        version,
        version == 1 ? "; convert the model again" : ""));
  }
  file_.version_ = version;
  if (!reader_.read(&tensor_count_) || !reader_.read(&entry_count_)) {
    return ends_early("header");
  }
  const struct {
    const char* field;
    uint64_t count;
    uint64_t item_bytes;
  } counts[] = {
      {"tensor count", tensor_count_, kMinTensorBytes},
      {"metadata count", entry_count_, kMinEntryBytes}};
  for (const auto& [field, count, item_bytes] : counts) {
    if (count > reader_.left() / item_bytes) {
      return invalid(concat(
          field, ": ", count, " do not fit in the file's ", reader_.size(), " bytes", kCutFile));
    }
  }
  return {};
}

Status GgufParser::read_name(const std::string& field, std::string_view* name) {
  uint64_t length = 0;
  if (!reader_.read(&length)) {
    return ends_early(field);
  }
  if (length == 0 || length > kMaxNameBytes) {
    return invalid(
        concat(field, ": expected a name of 1 to ", kMaxNameBytes, " bytes, found ", length));
  }
  return reader_.take_text(length, name) ? Status() : ends_early(field);
}

Status GgufParser::read_entry(uint64_t ordinal) {
  GgufEntry entry;
  PAVO_RETURN_IF_ERROR(read_name(concat("metadata key ", ordinal), &entry.key));
  const std::string field = "key " + quote(entry.key);
  uint32_t type = 0;
  if (!reader_.read(&type)) {
    return ends_early(field);
  }
  PAVO_RETURN_IF_ERROR(read_value(field, static_cast<GgufType>(type), &entry.value));
  if (!file_.index_.emplace(entry.key, file_.entries_.size()).second) {
    return invalid(field + " is there twice");
  }
  file_.entries_.push_back(entry);
  return {};
}

Status GgufParser::read_value(const std::string& field, GgufType type, GgufValue* value) {
  value->type = type;
  if (type == GgufType::kString) {
    return read_string(field, value);
  }
  if (type == GgufType::kArray) {
    return read_array(field, value);
  }
  const size_t start = reader_.position();
  PAVO_RETURN_IF_ERROR(skip_elements(field, type, 1, 0));
  value->bytes = reader_.since(start);
  return {};
}

Status GgufParser::read_string(const std::string& field, GgufValue* value) {
  uint64_t length = 0;
  if (!reader_.read(&length) || !reader_.take(length, &value->bytes)) {
    return ends_early(field);
  }
  return {};
}

Status GgufParser::read_array(const std::string& field, GgufValue* value) {
  PAVO_RETURN_IF_ERROR(read_array_head(field, &value->element_type, &value->count));
  const size_t start = reader_.position();
  PAVO_RETURN_IF_ERROR(skip_elements(field, value->element_type, value->count, 1));
  value->bytes = reader_.since(start);
  return {};
}

Status GgufParser::read_array_head(const std::string& field, GgufType* type, uint64_t* count) {
  uint32_t raw_type = 0;
  if (!reader_.read(&raw_type) || !reader_.read(count)) {
    return ends_early(field);
  }
  *type = static_cast<GgufType>(raw_type);
  return {};
}

Status GgufParser::skip_elements(
    const std::string& field, GgufType type, uint64_t count, int depth) {
  if (depth > kMaxArrayDepth) {
    return invalid(
        concat(field, ": expected at most ", kMaxArrayDepth, " nested arrays, found more"));
  }
  if (type == GgufType::kString) {
    for (uint64_t i = 0; i < count; ++i) {
      GgufValue element;
      if (!read_string({}, &element).ok()) {
        return ends_early(concat(field, ": string ", i, " of ", count));
      }
    }
    return {};
  }
  if (type == GgufType::kArray) {
    for (uint64_t i = 0; i < count; ++i) {
      GgufValue element;
      PAVO_RETURN_IF_ERROR(read_array_head(field, &element.element_type, &element.count));
      PAVO_RETURN_IF_ERROR(skip_elements(field, element.element_type, element.count, depth + 1));
    }
    return {};
  }
  const uint32_t element_bytes = gguf_type_bytes(type);
  if (element_bytes == 0) {
    return invalid(concat(field, ": type ", static_cast<uint32_t>(type), " is not known"));
  }
  std::span<const std::byte> bytes;
  if (count > reader_.left() / element_bytes || !reader_.take(count * element_bytes, &bytes)) {
    return ends_early(field);
  }
  const auto is_bool = [](std::byte b) { return std::to_integer<unsigned>(b) <= 1; };
  if (type == GgufType::kBool && !std::all_of(bytes.begin(), bytes.end(), is_bool)) {
    return invalid(field + ": expected a bool stored as 0 or 1, found another number");
  }
  return {};
}

Status GgufParser::refuse_split() const {
  PAVO_ASSIGN_OR_RETURN(const int64_t parts, file_.get_or<int64_t>("split.count", 1));
  if (parts > 1) {
    return {
        Code::kUnsupported,
        concat(
            "gguf: key 'split.count': expected a whole model, found one of ",
            parts,
            " parts; merge them into one file first")};
  }
  return {};
}

Status GgufParser::read_alignment() {
  PAVO_ASSIGN_OR_RETURN(
      const int64_t found, file_.get_or<int64_t>("general.alignment", kDefaultAlignment));
  const auto alignment = static_cast<uint64_t>(found);
  if (!std::has_single_bit(alignment) || alignment > kMaxAlignment) {
    return invalid(concat(
        "key 'general.alignment': expected a power of two up to ",
        kMaxAlignment,
        ", found ",
        found));
  }
  file_.alignment_ = alignment;
  return {};
}

Status GgufParser::read_tensor(uint64_t ordinal) {
  FileTensor tensor;
  std::string_view name;
  PAVO_RETURN_IF_ERROR(read_name(concat("tensor ", ordinal, ": name"), &name));
  tensor.name = name;
  const std::string field = "tensor " + quote(name);
  PAVO_RETURN_IF_ERROR(read_shape(field, &tensor));
  PAVO_RETURN_IF_ERROR(read_type(field, &tensor));
  uint64_t offset = 0;
  if (!reader_.read(&offset)) {
    return ends_early(field);
  }
  if (offset % file_.alignment_ != 0) {
    return invalid(
        concat(field, ": expected an offset aligned to ", file_.alignment_, ", found ", offset));
  }
  offsets_.push_back(offset);
  tensors_.push_back(std::move(tensor));
  return {};
}

Status GgufParser::read_shape(const std::string& field, FileTensor* tensor) {
  uint32_t dimensions = 0;
  if (!reader_.read(&dimensions)) {
    return ends_early(field);
  }
  if (dimensions == 0 || dimensions > kMaxDimensions) {
    return invalid(
        concat(field, ": expected 1 to ", kMaxDimensions, " dimensions, found ", dimensions));
  }
  // Values are limited to 2^53 in all: larger than any file, small enough for every later product.
  constexpr uint64_t kMaxValues = uint64_t{1} << 53;
  uint64_t values = 1;
  for (uint32_t i = 0; i < dimensions; ++i) {
    uint64_t length = 0;
    if (!reader_.read(&length)) {
      return ends_early(field);
    }
    if (length == 0 || length > kMaxValues / values) {
      return invalid(
          concat(field, ": dimension ", i, ": expected a size within the file, found ", length));
    }
    values *= length;
    tensor->shape.push_back(static_cast<int64_t>(length));
  }
  std::reverse(tensor->shape.begin(), tensor->shape.end());  // the file has the innermost first
  return {};
}

Status GgufParser::read_type(const std::string& field, FileTensor* tensor) {
  uint32_t id = 0;
  if (!reader_.read(&id)) {
    return ends_early(field);
  }
  const GgmlType* type = find_ggml_type(id);
  if (type == nullptr) {
    tensor->type_name = concat("ggml type ", id);
    return {};
  }
  tensor->type = type->pavo_type;
  tensor->type_name = type->name;
  const auto row = static_cast<uint64_t>(tensor->shape.back());
  if (row % type->block_values != 0) {
    return invalid(concat(
        field,
        ": expected rows of a multiple of ",
        type->block_values,
        " values for type ",
        type->name,
        ", found ",
        row));
  }
  uint64_t blocks = row / type->block_values;
  for (size_t i = 0; i + 1 < tensor->shape.size(); ++i) {
    blocks *= static_cast<uint64_t>(tensor->shape[i]);
  }
  tensor->size_bytes = blocks * type->block_bytes;
  return {};
}

Status GgufParser::place_tensors() {
  // Relative to a start that is aligned itself; a file without tensors may end before it.
  const uint64_t alignment = file_.alignment_;
  const uint64_t start = (reader_.position() + alignment - 1) / alignment * alignment;
  const uint64_t size = reader_.size();
  for (size_t i = 0; i < tensors_.size(); ++i) {
    FileTensor& tensor = tensors_[i];
    // In this order nothing overflows, and a tensor of no known size must start inside, too.
    const bool fits = start <= size && offsets_[i] <= size - start &&
                      tensor.size_bytes <= size - start - offsets_[i];
    if (!fits) {
      return invalid(concat(
          "tensor ",
          quote(tensor.name),
          ": data start ",
          start,
          " + offset ",
          offsets_[i],
          " + size ",
          tensor.size_bytes,
          " ends after the file's ",
          size,
          " bytes",
          kCutFile));
    }
    tensor.data = reader_.all().data() + start + offsets_[i];
  }
  return {};
}

Result<GgufFile> GgufFile::parse(std::span<const std::byte> bytes) {
  return GgufParser(bytes).parse();
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  PAVO_ASSIGN_OR_RETURN(MappedFile mapped, MappedFile::open(path));
  PAVO_ASSIGN_OR_RETURN(GgufFile file, parse(mapped.bytes()));
  file.file_ = std::move(mapped);
  return file;
}

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto found = index_.find(key);
  return found == index_.end() ? nullptr : &entries_[found->second].value;
}

}  // namespace pavo::llm
