#include "kernels/host/caps.h"

#include <algorithm>

#include "pavo/plugin_helpers.h"

#include "kernels/host/error.h"

namespace pavo::cuda {
namespace {

// One number of Caps and the key that fills it.
struct Field {
  std::string_view key;
  int32_t* int32 = nullptr;
  int64_t* int64 = nullptr;
  double* number = nullptr;
};

int32_t read_field(const Field& field, const pavo_value& value, pavo_error* error) {
  const bool is_int = value.type == PAVO_VALUE_INT;
  const bool is_float = value.type == PAVO_VALUE_FLOAT && field.number != nullptr;
  const double number = is_int ? static_cast<double>(value.int_value) : value.float_value;
  const double most = field.int32 != nullptr ? 2147483647.0 : 9e18;
  if ((!is_int && !is_float) || !(number > 0) || number > most) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "caps: expected %.*s to be a positive number, got type %d, value %g",
        static_cast<int>(field.key.size()),
        field.key.data(),
        value.type,
        number);
  }
  if (field.int32 != nullptr) {
    *field.int32 = static_cast<int32_t>(value.int_value);
  } else if (field.int64 != nullptr) {
    *field.int64 = value.int_value;
  } else {
    *field.number = number;
  }
  return PAVO_OK;
}

}  // namespace

int32_t read_caps(const PluginInfo& info, const pavo_values* values, Caps* out, pavo_error* error) {
  *out = info.facts.typical;
  if (values == nullptr) {
    return PAVO_OK;
  }
  pavo_values list{};
  PAVO_TRY(sdk::read_struct(values, &list, sizeof(pavo_values), "caps", error));
  const Field fields[] = {
      {PAVO_CAP_COMPUTE_CAPABILITY, &out->compute_capability},
      {PAVO_CAP_SM_COUNT, &out->sm_count},
      {PAVO_CAP_MEMORY_BYTES, nullptr, &out->memory_bytes},
      {PAVO_CAP_SHARED_BYTES_PER_BLOCK, nullptr, &out->shared_bytes_per_block},
      {kCapL2Bytes, nullptr, &out->l2_bytes},
      {PAVO_CAP_BANDWIDTH, nullptr, nullptr, &out->bandwidth_bytes_per_s},
      {PAVO_CAP_F32_FLOPS, nullptr, nullptr, &out->f32_flops}};
  for (uint32_t i = 0; i < list.count; ++i) {
    pavo_value value{};
    PAVO_TRY(sdk::read_struct(list.items[i], &value, sizeof(pavo_value), "caps", error));
    for (const Field& field : fields) {
      if (field.key == sdk::view(value.key)) {
        PAVO_TRY(read_field(field, value, error));
      }
    }
  }
  // The code is made for the plugin's chip, so a device that has more does not count.
  out->shared_bytes_per_block =
      std::min(out->shared_bytes_per_block, info.facts.shared_bytes_per_block);
  return PAVO_OK;
}

pavo_value& CapsList::append(std::string_view key, int32_t type) {
  texts_.emplace_back(key);
  pavo_value& value = items_.emplace_back();
  value.struct_size = sizeof(pavo_value);
  value.type = type;
  value.key = sdk::string(texts_.back());
  pointers_.push_back(&value);
  return value;
}

void CapsList::add(std::string_view key, int64_t value) {
  append(key, PAVO_VALUE_INT).int_value = value;
}

void CapsList::add(std::string_view key, double value) {
  append(key, PAVO_VALUE_FLOAT).float_value = value;
}

void CapsList::add(std::string_view key, std::string_view value) {
  pavo_value& item = append(key, PAVO_VALUE_STRING);
  texts_.emplace_back(value);
  item.string_value = sdk::string(texts_.back());
}

const pavo_values& CapsList::values() {
  values_ = {sizeof(pavo_values), static_cast<uint32_t>(pointers_.size()), pointers_.data()};
  return values_;
}

}  // namespace pavo::cuda
