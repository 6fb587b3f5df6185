// Builds GGUF files for tests, field by field, right or deliberately wrong.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "llm/gguf_types.h"

namespace pavo::llm::testing {

using Bytes = std::vector<std::byte>;

template <typename T>
void append(Bytes* out, const T& value) {
  const auto* data = reinterpret_cast<const std::byte*>(&value);
  out->insert(out->end(), data, data + sizeof value);
}

inline void append_text(Bytes* out, std::string_view text) {
  append<uint64_t>(out, text.size());
  const auto* data = reinterpret_cast<const std::byte*>(text.data());
  out->insert(out->end(), data, data + text.size());
}

class GgufBuilder {
 public:
  // Header fields, to be overwritten by tests of the header. Counts below zero: the true ones.
  std::string magic = "GGUF";
  uint32_t version = 3;
  int64_t tensor_count = -1;
  int64_t entry_count = -1;
  uint64_t alignment = 32;  // of what build() lays out; the key is up to the test

  template <typename T>
  GgufBuilder& scalar(std::string_view key, GgufType type, T value) {
    begin(key, type);
    append(&entries_, value);
    return *this;
  }
  GgufBuilder& u32(std::string_view key, uint32_t value) {
    return scalar(key, GgufType::kUint32, value);
  }
  GgufBuilder& f32(std::string_view key, float value) {
    return scalar(key, GgufType::kFloat32, value);
  }
  GgufBuilder& text(std::string_view key, std::string_view value) {
    begin(key, GgufType::kString);
    append_text(&entries_, value);
    return *this;
  }
  GgufBuilder& texts(std::string_view key, const std::vector<std::string>& values) {
    begin_array(key, GgufType::kString, values.size());
    for (const std::string& value : values) {
      append_text(&entries_, value);
    }
    return *this;
  }
  template <typename T>
  GgufBuilder& array(std::string_view key, GgufType type, const std::vector<T>& values) {
    begin_array(key, type, values.size());
    for (const T& value : values) {
      append(&entries_, value);
    }
    return *this;
  }
  // A key and a value that the test encodes itself.
  GgufBuilder& raw(std::string_view key, uint32_t type, const Bytes& value) {
    begin(key, static_cast<GgufType>(type));
    entries_.insert(entries_.end(), value.begin(), value.end());
    return *this;
  }

  // `dims` innermost first, as files have them. Without an offset the data goes behind the last.
  GgufBuilder& tensor(
      std::string_view name,
      const std::vector<uint64_t>& dims,
      uint32_t ggml_type,
      const Bytes& data,
      int64_t offset = -1) {
    data_.resize((data_.size() + alignment - 1) / alignment * alignment);
    append_text(&infos_, name);
    append(&infos_, static_cast<uint32_t>(dims.size()));
    for (const uint64_t dim : dims) {
      append(&infos_, dim);
    }
    append(&infos_, ggml_type);
    append(
        &infos_, offset < 0 ? static_cast<uint64_t>(data_.size()) : static_cast<uint64_t>(offset));
    data_.insert(data_.end(), data.begin(), data.end());
    ++tensors_made_;
    return *this;
  }
  GgufBuilder& f32_tensor(std::string_view name, const std::vector<uint64_t>& dims) {
    uint64_t values = 1;
    for (const uint64_t dim : dims) {
      values *= dim;
    }
    return tensor(name, dims, 0, Bytes(values * 4));
  }

  Bytes build() const {
    Bytes out;
    for (const char c : magic) {
      append(&out, c);
    }
    append(&out, version);
    append(&out, static_cast<uint64_t>(tensor_count < 0 ? tensors_made_ : tensor_count));
    append(&out, static_cast<uint64_t>(entry_count < 0 ? entries_made_ : entry_count));
    out.insert(out.end(), entries_.begin(), entries_.end());
    out.insert(out.end(), infos_.begin(), infos_.end());
    if (tensors_made_ > 0) {
      out.resize((out.size() + alignment - 1) / alignment * alignment);
    }
    out.insert(out.end(), data_.begin(), data_.end());
    return out;
  }

 private:
  void begin(std::string_view key, GgufType type) {
    append_text(&entries_, key);
    append(&entries_, static_cast<uint32_t>(type));
    ++entries_made_;
  }
  void begin_array(std::string_view key, GgufType type, uint64_t count) {
    begin(key, GgufType::kArray);
    append(&entries_, static_cast<uint32_t>(type));
    append(&entries_, count);
  }

  Bytes entries_;
  Bytes infos_;
  Bytes data_;
  int64_t entries_made_ = 0;
  int64_t tensors_made_ = 0;
};

}  // namespace pavo::llm::testing
