// Safetensors files: tensors that lie inside of the bytes and do not overlap, or a message.
#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "llm/safetensors.h"
#include "tests/fuzz/fuzz.h"

using pavo::fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto bytes = std::as_bytes(std::span(data, size));
  auto tensors = pavo::llm::parse_safetensors(bytes);
  if (!tensors.ok()) {
    require(!tensors.status().message().empty(), "errors have a message");
    return 0;
  }
  uint64_t total = 0;
  for (const auto& tensor : *tensors) {
    require(tensor.data >= bytes.data(), "tensors lie in the file");
    require(tensor.data + tensor.size_bytes <= bytes.data() + size, "tensors lie in the file");
    const int64_t row_bytes =
        tensor.shape.empty() ? -1 : pavo_type_row_bytes(tensor.type, tensor.shape.back());
    if (row_bytes > 0) {
      require(tensor.size_bytes % static_cast<uint64_t>(row_bytes) == 0, "rows are whole");
    }
    total += tensor.size_bytes;
  }
  const auto table = pavo::llm::TensorTable::make(std::move(*tensors), "safetensors");
  require(!table.ok() || total <= size, "tensors that do not overlap fit in the file");
  return 0;
}

std::vector<std::vector<uint8_t>> pavo::fuzz::seeds() {
  std::vector<std::vector<uint8_t>> out;
  for (
      const std::string_view header :
      {R"({"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
       R"("b":{"dtype":"BF16","shape":[4],"data_offsets":[24,32]}})",
       R"({"x":{"dtype":"I64","shape":[],"data_offsets":[0,8]},)"
       R"("y":{"dtype":"F4","shape":[16],"data_offsets":[8,16]}})",
       "{}  "}) {
    const uint64_t length = header.size();
    std::vector<uint8_t> seed(sizeof length + length + 32);
    std::memcpy(seed.data(), &length, sizeof length);
    std::copy(header.begin(), header.end(), seed.begin() + sizeof length);
    out.push_back(std::move(seed));
  }
  return out;
}
