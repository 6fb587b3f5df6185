// Weights on their way to the device: sizes and the rearrangement of weight_layout.h, on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pavo/plugin.h"

#include "kernels/common/weight_layout.h"

namespace pavo::cuda {

// The packed form of one weight.
struct PackedForm {
  int32_t type;
  bool dense;  // plain f32
  int64_t rows;
  int64_t columns;
  int64_t file_row_bytes;
  int64_t row_bytes;  // packed

  int64_t size_bytes() const { return rows * row_bytes; }
};

// PAVO_ERROR_INVALID_ARGUMENT for what is no weight, PAVO_ERROR_UNSUPPORTED for a type or a mixture
// of uses that has no packed form.
int32_t packed_form(const pavo_tensor* tensor, PackedForm* out, pavo_error* error);

// Packs `count` rows of the file (any alignment) to dst, 16-byte aligned. Padding becomes 0.
void pack_rows(const PackedForm& form, const std::byte* src, int64_t count, std::byte* dst);

// As pack_info and pack of the ABI.
int32_t pack_info(const pavo_tensor* tensor, pavo_pack_info* info, pavo_error* error);
int32_t pack(
    pavo_device* device,
    const pavo_tensor* tensor,
    const pavo_binding* target,
    const void* src,
    int64_t row_begin,
    int64_t row_count,
    pavo_error* error);

}  // namespace pavo::cuda
