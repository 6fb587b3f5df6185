// Weights on devices: packed once a device from the mapped model file, or used in place.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "core/device.h"
#include "core/graph.h"

namespace pavo {

// A tensor as the model file holds it. The memory must outlive the store.
struct HostTensor {
  std::string name;
  int32_t type = PAVO_TYPE_F32;
  Shape shape;
  const std::byte* data = nullptr;
  int64_t size_bytes = 0;
};

// Not thread-safe: the engine that owns it serialises.
class WeightStore {
 public:
  explicit WeightStore(std::map<std::string, HostTensor> tensors) : tensors_(std::move(tensors)) {}

  const HostTensor* find(const std::string& name) const;

  // Where the weight lies on the device; packs it at the first call. `weight` comes from a graph
  // and must have the file's name, type and shape.
  Result<pavo_binding> bind(Device& device, const Tensor& weight);

  int64_t packed_bytes() const { return packed_bytes_; }      // copied into device memory
  int64_t in_place_bytes() const { return in_place_bytes_; }  // used where the file is mapped

 private:
  Result<Buffer> make(Device& device, const Tensor& weight, const HostTensor& source);

  using Key = std::tuple<const Device*, std::string, uint32_t>;  // device, name, uses
  std::map<std::string, HostTensor> tensors_;
  std::map<Key, Buffer> packed_;
  int64_t packed_bytes_ = 0;
  int64_t in_place_bytes_ = 0;
};

}  // namespace pavo
