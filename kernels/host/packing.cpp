#include "kernels/host/packing.h"

#include <algorithm>
#include <cinttypes>
#include <memory>
#include <vector>

#include "pavo/plugin_helpers.h"

#include "kernels/host/device.h"
#include "kernels/host/error.h"

namespace pavo::cuda {
namespace {

int32_t unsupported(const pavo_tensor& tensor, const char* expected, pavo_error* error) {
  return sdk::fail(
      error,
      PAVO_ERROR_UNSUPPORTED,
      "weight '%.*s': expected %s, got type %s, uses %u",
      static_cast<int>(std::min<uint64_t>(tensor.name.size, 96)),
      tensor.name.data == nullptr ? "" : tensor.name.data,
      expected,
      pavo_type_name(tensor.type),
      tensor.uses);
}

int32_t check_sizes(const pavo_tensor& tensor, pavo_error* error) {
  bool sound = tensor.role == PAVO_ROLE_WEIGHT && tensor.rank >= 1 && tensor.rank <= PAVO_MAX_RANK;
  int64_t count = 1;
  for (int32_t i = 0; sound && i < tensor.rank; ++i) {
    sound = tensor.shape[i] >= 0 && !__builtin_mul_overflow(count, tensor.shape[i], &count) &&
            count <= (int64_t{1} << 40);
  }
  sound = sound && pavo_type_row_bytes(tensor.type, tensor.shape[tensor.rank - 1]) >= 0;
  return sound ? PAVO_OK
               : sdk::fail(
                     error,
                     PAVO_ERROR_INVALID_ARGUMENT,
                     "expected a weight of whole blocks of rank 1 to 4, got role %d, type %s, "
                     "rank %d",
                     tensor.role,
                     pavo_type_name(tensor.type),
                     tensor.rank);
}

}  // namespace

int32_t packed_form(const pavo_tensor* source, PackedForm* out, pavo_error* error) {
  pavo_tensor tensor{};
  PAVO_TRY(sdk::read_struct(source, &tensor, sizeof(pavo_tensor), "pavo_tensor", error));
  PAVO_TRY(check_sizes(tensor, error));
  out->type = tensor.type;
  out->dense = tensor.uses == PAVO_USE_DENSE;
  out->columns = tensor.shape[tensor.rank - 1];
  out->rows = 1;
  for (int32_t i = 0; i + 1 < tensor.rank; ++i) {
    out->rows *= tensor.shape[i];
  }
  out->file_row_bytes = pavo_type_row_bytes(tensor.type, out->columns);
  const bool is_float =
      tensor.type == PAVO_TYPE_F32 || tensor.type == PAVO_TYPE_F16 || tensor.type == PAVO_TYPE_BF16;
  if (out->dense) {
    out->row_bytes = 4 * out->columns;
    return is_float ? PAVO_OK : unsupported(tensor, "f32, f16 or bf16 for dense use", error);
  }
  if (tensor.uses == 0 || (tensor.uses & ~(PAVO_USE_MATMUL | PAVO_USE_GATHER)) != 0) {
    return unsupported(tensor, "uses of matmul and gather, or of dense alone", error);
  }
  if (block_parts(tensor.type).block_values == 0) {
    return unsupported(tensor, "f32 f16 bf16 q4_0 q4_1 q8_0 q4_k q6_k", error);
  }
  out->row_bytes = weight_layout(tensor.type, out->columns).row_bytes;
  return PAVO_OK;
}

int32_t pack_info(const pavo_tensor* tensor, pavo_pack_info* info, pavo_error* error) {
  PackedForm form{};
  PAVO_TRY(packed_form(tensor, &form, error));
  if (info == nullptr || info->struct_size < sizeof(pavo_pack_info)) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected a pavo_pack_info of at least %zu bytes",
        sizeof(pavo_pack_info));
  }
  info->in_place = 0;
  info->size_bytes = form.size_bytes();
  info->alignment = kWeightAlignment;
  return PAVO_OK;
}

namespace {

// Rows that fit a staging half go through it; longer ones through memory of their own.
int32_t upload_rows(
    pavo_device* device,
    const PackedForm& form,
    const std::byte* src,
    int64_t count,
    std::byte* target,
    pavo_error* error) {
  if (form.row_bytes > Staging::kHalfBytes) {
    std::vector<std::byte> row(static_cast<size_t>(form.row_bytes));
    for (int64_t i = 0; i < count; ++i) {
      pack_rows(form, src + i * form.file_row_bytes, 1, row.data());
      PAVO_CUDA_TRY(cudaMemcpyAsync(
          target + i * form.row_bytes,
          row.data(),
          row.size(),
          cudaMemcpyDefault,
          device->copy_in()));
      PAVO_CUDA_TRY(cudaStreamSynchronize(device->copy_in()));
    }
    return PAVO_OK;
  }
  std::unique_ptr<Staging> staging;
  PAVO_TRY(device->staging().acquire(&staging, error));
  const int64_t most = Staging::kHalfBytes / form.row_bytes;
  for (int64_t row = 0; row < count; row += most) {
    const int64_t rows = std::min(most, count - row);
    std::byte* half = nullptr;
    PAVO_TRY(staging->next(&half, error));
    pack_rows(form, src + row * form.file_row_bytes, rows, half);
    PAVO_CUDA_TRY(cudaMemcpyAsync(
        target + row * form.row_bytes,
        half,
        static_cast<size_t>(rows * form.row_bytes),
        cudaMemcpyDefault,
        device->copy_in()));
    PAVO_TRY(staging->queued(device->copy_in(), error));
  }
  return staging->finish(error);
}

}  // namespace

int32_t pack(
    pavo_device* device,
    const pavo_tensor* tensor,
    const pavo_binding* target,
    const void* src,
    int64_t row_begin,
    int64_t row_count,
    pavo_error* error) {
  PackedForm form{};
  PAVO_TRY(packed_form(tensor, &form, error));
  if (row_begin < 0 || row_count < 0 || row_begin > form.rows ||
      row_count > form.rows - row_begin) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "pack: expected rows within 0..%" PRId64 ", got %" PRId64 " from %" PRId64,
        form.rows,
        row_count,
        row_begin);
  }
  if (target == nullptr || (src == nullptr && row_count * form.row_bytes != 0) ||
      target->offset % kWeightAlignment != 0) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "pack: expected a source and a target at a multiple of %" PRId64
        " bytes, got offset %" PRId64,
        kWeightAlignment,
        target == nullptr ? -1 : target->offset);
  }
  PAVO_TRY(check_range(device, *target, form.size_bytes(), "pack", error));
  if (row_count * form.row_bytes == 0) {
    return PAVO_OK;
  }
  const int32_t code = upload_rows(
      device,
      form,
      static_cast<const std::byte*>(src),
      row_count,
      target->buffer->data + target->offset + row_begin * form.row_bytes,
      error);
  return code == PAVO_OK ? code : device->note(code, *error);
}

}  // namespace pavo::cuda
