// Typed access to GGUF metadata. The values were checked when the file was parsed, so decoding here
// cannot run past the end.
#include <limits>
#include <optional>
#include <type_traits>

#include "llm/byte_reader.h"
#include "llm/gguf.h"
#include "llm/message.h"

namespace pavo::llm {
namespace {

template <typename Stored, typename T>
std::optional<T> convert(ByteReader* reader) {
  Stored stored{};
  if (!reader->read(&stored)) {
    return std::nullopt;
  }
  if constexpr (std::is_same_v<Stored, uint64_t>) {
    if (stored > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return std::nullopt;
    }
  }
  return static_cast<T>(stored);
}

// Each reads one value of type `type`; nullopt if that type is no T or the value does not fit.
std::optional<int64_t> decode(GgufType type, ByteReader* reader, int64_t /*tag*/) {
  switch (type) {
    case GgufType::kUint8:
      return convert<uint8_t, int64_t>(reader);
    case GgufType::kInt8:
      return convert<int8_t, int64_t>(reader);
    case GgufType::kUint16:
      return convert<uint16_t, int64_t>(reader);
    case GgufType::kInt16:
      return convert<int16_t, int64_t>(reader);
    case GgufType::kUint32:
      return convert<uint32_t, int64_t>(reader);
    case GgufType::kInt32:
      return convert<int32_t, int64_t>(reader);
    case GgufType::kUint64:
      return convert<uint64_t, int64_t>(reader);
    case GgufType::kInt64:
      return convert<int64_t, int64_t>(reader);
    default:
      return std::nullopt;
  }
}

std::optional<double> decode(GgufType type, ByteReader* reader, double /*tag*/) {
  if (type == GgufType::kFloat32) {
    return convert<float, double>(reader);
  }
  return type == GgufType::kFloat64 ? convert<double, double>(reader) : std::nullopt;
}

std::optional<bool> decode(GgufType type, ByteReader* reader, bool /*tag*/) {
  uint8_t stored = 0;
  if (type != GgufType::kBool || !reader->read(&stored)) {
    return std::nullopt;
  }
  return stored != 0;
}

// Strings inside arrays carry their length; a string value is already bare.
std::optional<std::string_view> decode(
    GgufType type, ByteReader* reader, std::string_view /*tag*/) {
  uint64_t length = 0;
  std::string_view text;
  if (type != GgufType::kString || !reader->read(&length) || !reader->take_text(length, &text)) {
    return std::nullopt;
  }
  return text;
}

template <typename T>
struct ElementOf {
  using Type = void;
};
template <typename T>
struct ElementOf<std::vector<T>> {
  using Type = T;
};

template <typename T>
std::optional<std::vector<T>> decode_array(const GgufValue& value) {
  if (value.type != GgufType::kArray) {
    return std::nullopt;
  }
  ByteReader reader(value.bytes);
  std::vector<T> out;
  for (uint64_t i = 0; i < value.count; ++i) {
    const std::optional<T> element = decode(value.element_type, &reader, T{});
    if (!element) {
      return std::nullopt;
    }
    out.push_back(*element);
  }
  return out;
}

template <typename T>
std::optional<T> decode_value(const GgufValue& value) {
  if constexpr (!std::is_void_v<typename ElementOf<T>::Type>) {
    return decode_array<typename ElementOf<T>::Type>(value);
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    if (value.type != GgufType::kString) {
      return std::nullopt;
    }
    return std::string_view(reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size());
  } else {
    ByteReader reader(value.bytes);
    return decode(value.type, &reader, T{});
  }
}

template <typename T>
constexpr const char* kExpected = nullptr;
template <>
constexpr const char* kExpected<bool> = "a bool";
template <>
constexpr const char* kExpected<int64_t> = "an integer below 2^63";
template <>
constexpr const char* kExpected<double> = "a float";
template <>
constexpr const char* kExpected<std::string_view> = "a string";
template <>
constexpr const char* kExpected<std::vector<std::string_view>> = "an array of strings";
template <>
constexpr const char* kExpected<std::vector<int64_t>> = "an array of integers";
template <>
constexpr const char* kExpected<std::vector<double>> = "an array of floats";

}  // namespace

std::string describe(const GgufValue& value) {
  if (value.type != GgufType::kArray) {
    return gguf_type_name(value.type);
  }
  return concat("array of ", value.count, " ", gguf_type_name(value.element_type));
}

template <typename T>
Result<T> GgufFile::get(std::string_view key) const {
  const GgufValue* value = find(key);
  std::optional<T> decoded = value == nullptr ? std::nullopt : decode_value<T>(*value);
  if (decoded) {
    return *std::move(decoded);
  }
  return Status(
      Code::kInvalidFile,
      concat(
          "gguf: key ",
          quote(key),
          ": expected ",
          kExpected<T>,
          ", found ",
          value == nullptr ? "no such key" : describe(*value)));
}

template Result<bool> GgufFile::get(std::string_view) const;
template Result<int64_t> GgufFile::get(std::string_view) const;
template Result<double> GgufFile::get(std::string_view) const;
template Result<std::string_view> GgufFile::get(std::string_view) const;
template Result<std::vector<std::string_view>> GgufFile::get(std::string_view) const;
template Result<std::vector<int64_t>> GgufFile::get(std::string_view) const;
template Result<std::vector<double>> GgufFile::get(std::string_view) const;

}  // namespace pavo::llm
