#include "core/weight_store.h"

#include "core/graph_view.h"
#include "core/op_rules.h"

namespace pavo {

const HostTensor* WeightStore::find(const std::string& name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

Result<Buffer> WeightStore::make(Device& device, const Tensor& weight, const HostTensor& source) {
  const pavo_tensor view = to_pavo_tensor(weight);
  PAVO_ASSIGN_OR_RETURN(const pavo_pack_info info, device.plugin().pack_info(device.caps(), view));
  const auto address = reinterpret_cast<uintptr_t>(source.data);
  const bool aligned = info.alignment > 0 && address % static_cast<uintptr_t>(info.alignment) == 0;
  if (info.in_place != 0 && info.size_bytes == source.size_bytes && aligned) {
    Result<Buffer> imported = device.import_buffer(source.data, source.size_bytes);
    if (imported.ok()) {
      in_place_bytes_ += source.size_bytes;
      return imported;
    }
  }
  PAVO_ASSIGN_OR_RETURN(Buffer buffer, device.create_buffer(info.size_bytes));
  PAVO_RETURN_IF_ERROR(
      device.pack(view, pavo_binding{buffer.get(), 0}, source.data, 0, source.shape.rows()));
  packed_bytes_ += info.size_bytes;
  return buffer;
}

Result<pavo_binding> WeightStore::bind(Device& device, const Tensor& weight) {
  const Key key{&device, weight.name, weight.uses};
  const auto found = packed_.find(key);
  if (found != packed_.end()) {
    return pavo_binding{found->second.get(), 0};
  }
  const HostTensor* source = find(weight.name);
  if (source == nullptr || source->type != weight.type || !(source->shape == weight.shape) ||
      source->size_bytes != stored_bytes(weight)) {
    return Status(
        Code::kInternal, "weight '" + weight.name + "' does not match what the model file holds");
  }
  Result<Buffer> buffer = make(device, weight, *source);
  if (!buffer.ok()) {
    return buffer.status().with_context("weight '" + weight.name + "'");
  }
  const auto [at, inserted] = packed_.emplace(key, std::move(buffer).value());
  return pavo_binding{at->second.get(), 0};
}

}  // namespace pavo
