#include "kernels/host/copy.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <vector>

#include "pavo/plugin_helpers.h"

#include "kernels/host/error.h"

namespace pavo::cuda {
namespace {

// The runtime refuses larger pitches.
constexpr int64_t kMaxPitch = 0x7fffffff;

enum class Place { kDevice, kPinned, kPageable };

struct Side {
  std::byte* address;
  int64_t pitch;
  Place place;
};

// One checked region. Rows without gaps are one row.
struct Transfer {
  Side src;
  Side dst;
  int64_t row_bytes;
  int64_t rows;

  bool pageable() const { return src.place == Place::kPageable || dst.place == Place::kPageable; }
  bool to_host() const { return dst.place != Place::kDevice && src.place == Place::kDevice; }
};

Place host_place(const void* address) {
  cudaPointerAttributes attributes = {};
  if (cudaPointerGetAttributes(&attributes, address) != cudaSuccess) {
    cudaGetLastError();
    return Place::kPageable;
  }
  return attributes.type == cudaMemoryTypeHost || attributes.type == cudaMemoryTypeManaged
             ? Place::kPinned
             : Place::kPageable;
}

// Bytes from the first to the last that a side touches; -1: too many.
int64_t extent(int64_t row_bytes, int64_t rows, int64_t pitch) {
  int64_t last = 0;
  int64_t bytes = 0;
  if (__builtin_mul_overflow(rows - 1, pitch, &last) ||
      __builtin_add_overflow(last, row_bytes, &bytes)) {
    return -1;
  }
  return bytes;
}

struct SideSpec {
  pavo_buffer* buffer;
  const void* host;
  int64_t offset;
  int64_t pitch;
  const char* name;
};

int32_t make_side(
    const pavo_device* device,
    const SideSpec& spec,
    const pavo_copy_region& region,
    Side* out,
    pavo_error* error) {
  const int64_t bytes = extent(region.row_bytes, region.rows, spec.pitch);
  if ((region.rows > 1 && spec.pitch < region.row_bytes) || bytes < 0) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "copy: expected a %s pitch of at least %" PRId64 " bytes, got %" PRId64,
        spec.name,
        region.row_bytes,
        spec.pitch);
  }
  out->pitch = spec.pitch;
  if (spec.buffer != nullptr) {
    PAVO_TRY(check_range(device, {spec.buffer, spec.offset}, bytes, spec.name, error));
    out->address = spec.buffer->data + spec.offset;
    out->place = spec.buffer->kind == PAVO_MEMORY_DEVICE ? Place::kDevice : Place::kPinned;
    return PAVO_OK;
  }
  if (spec.host == nullptr) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "copy: expected a buffer or host memory as %s, got neither",
        spec.name);
  }
  out->address = static_cast<std::byte*>(const_cast<void*>(spec.host)) + spec.offset;
  out->place = host_place(out->address);
  return PAVO_OK;
}

int32_t make_transfer(
    const pavo_device* device,
    const pavo_copy_region& region,
    std::vector<Transfer>* transfers,
    pavo_error* error) {
  if (region.row_bytes < 0 || region.rows < 0) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "copy: expected sizes of 0 or more, got %" PRId64 " rows of %" PRId64 " bytes",
        region.rows,
        region.row_bytes);
  }
  if (region.row_bytes == 0 || region.rows == 0) {
    return PAVO_OK;
  }
  Transfer transfer = {};
  transfer.row_bytes = region.row_bytes;
  transfer.rows = region.rows;
  const SideSpec src = {
      region.src, region.src_host, region.src_offset, region.src_pitch, "copy source"};
  const SideSpec dst = {
      region.dst, region.dst_host, region.dst_offset, region.dst_pitch, "copy destination"};
  PAVO_TRY(make_side(device, src, region, &transfer.src, error));
  PAVO_TRY(make_side(device, dst, region, &transfer.dst, error));
  const bool dense = transfer.rows == 1 || (transfer.src.pitch == transfer.row_bytes &&
                                            transfer.dst.pitch == transfer.row_bytes);
  if (dense) {
    transfer.row_bytes *= transfer.rows;
    transfer.rows = 1;
  }
  transfers->push_back(transfer);
  return PAVO_OK;
}

int32_t queue_transfer(const Transfer& transfer, cudaStream_t stream, pavo_error* error) {
  const auto bytes = static_cast<size_t>(transfer.row_bytes);
  if (transfer.rows > 1 && std::max(transfer.src.pitch, transfer.dst.pitch) <= kMaxPitch) {
    PAVO_CUDA_TRY(cudaMemcpy2DAsync(
        transfer.dst.address,
        static_cast<size_t>(transfer.dst.pitch),
        transfer.src.address,
        static_cast<size_t>(transfer.src.pitch),
        bytes,
        static_cast<size_t>(transfer.rows),
        cudaMemcpyDefault,
        stream));
    return PAVO_OK;
  }
  for (int64_t row = 0; row < transfer.rows; ++row) {
    PAVO_CUDA_TRY(cudaMemcpyAsync(
        transfer.dst.address + row * transfer.dst.pitch,
        transfer.src.address + row * transfer.src.pitch,
        bytes,
        cudaMemcpyDefault,
        stream));
  }
  return PAVO_OK;
}

// A part of a transfer that fits a staging half: either some whole rows or a part of one row.
struct Piece {
  int64_t row;
  int64_t rows;
  int64_t column;
  int64_t bytes;  // of each row
};

std::vector<Piece> cut(const Transfer& transfer) {
  std::vector<Piece> pieces;
  if (transfer.row_bytes <= Staging::kHalfBytes) {
    const int64_t most = Staging::kHalfBytes / transfer.row_bytes;
    for (int64_t row = 0; row < transfer.rows; row += most) {
      pieces.push_back({row, std::min(most, transfer.rows - row), 0, transfer.row_bytes});
    }
    return pieces;
  }
  for (int64_t row = 0; row < transfer.rows; ++row) {
    for (int64_t column = 0; column < transfer.row_bytes; column += Staging::kHalfBytes) {
      pieces.push_back(
          {row, 1, column, std::min(Staging::kHalfBytes, transfer.row_bytes - column)});
    }
  }
  return pieces;
}

// One side of a piece, and the same bytes dense in a staging half.
Transfer part(const Side& src, const Side& dst, const Piece& piece) {
  return {src, dst, piece.bytes, piece.rows};
}

Side at(const Side& side, const Piece& piece) {
  return {side.address + piece.row * side.pitch + piece.column, side.pitch, side.place};
}

void copy_on_host(const Transfer& transfer) {
  for (int64_t row = 0; row < transfer.rows; ++row) {
    std::memcpy(
        transfer.dst.address + row * transfer.dst.pitch,
        transfer.src.address + row * transfer.src.pitch,
        static_cast<size_t>(transfer.row_bytes));
  }
}

int32_t upload_staged(pavo_device* device, const Transfer& transfer, pavo_error* error) {
  std::unique_ptr<Staging> staging;
  PAVO_TRY(device->staging().acquire(&staging, error));
  for (const Piece& piece : cut(transfer)) {
    Side half = {nullptr, piece.bytes, Place::kPinned};
    PAVO_TRY(staging->next(&half.address, error));
    copy_on_host(part(at(transfer.src, piece), half, piece));
    PAVO_TRY(queue_transfer(part(half, at(transfer.dst, piece), piece), device->copy_in(), error));
    PAVO_TRY(staging->queued(device->copy_in(), error));
  }
  return staging->finish(error);
}

int32_t download_staged(pavo_device* device, const Transfer& transfer, pavo_error* error) {
  std::unique_ptr<Staging> staging;
  PAVO_TRY(device->staging().acquire(&staging, error));
  const std::vector<Piece> pieces = cut(transfer);
  Side halves[2] = {};
  const auto take_out = [&](size_t i) {
    copy_on_host(part(halves[i % 2], at(transfer.dst, pieces[i]), pieces[i]));
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    Side& half = halves[i % 2];
    half = {nullptr, pieces[i].bytes, Place::kPinned};
    PAVO_TRY(staging->next(&half.address, error));
    PAVO_TRY(queue_transfer(
        part(at(transfer.src, pieces[i]), half, pieces[i]), device->copy_out(), error));
    PAVO_TRY(staging->queued(device->copy_out(), error));
    if (i > 0) {  // while piece i travels
      PAVO_TRY(staging->wait_previous(error));
      take_out(i - 1);
    }
  }
  PAVO_TRY(staging->finish(error));
  take_out(pieces.size() - 1);
  return PAVO_OK;
}

int32_t copy_staged(pavo_device* device, const Transfer& transfer, pavo_error* error) {
  if (transfer.dst.place == Place::kDevice) {
    return upload_staged(device, transfer, error);
  }
  if (transfer.src.place == Place::kDevice) {
    return download_staged(device, transfer, error);
  }
  copy_on_host(transfer);
  return PAVO_OK;
}

// Which streams a batch uses; the last one signals for all.
struct Streams {
  bool in;
  bool out;
  cudaStream_t signalling(const pavo_device& device) const {
    return in ? device.copy_in() : device.copy_out();
  }
};

int32_t queue_all(
    pavo_device* device,
    const std::vector<Transfer>& transfers,
    const Streams& streams,
    const Fences& fences,
    pavo_error* error) {
  const auto is_pageable = [](const Transfer& t) { return t.pageable(); };
  if (std::any_of(transfers.begin(), transfers.end(), is_pageable)) {
    PAVO_TRY(fences.wait_here(error));
  }
  if (streams.in) {
    PAVO_TRY(fences.wait_in(device->copy_in(), error));
  }
  if (streams.out) {
    PAVO_TRY(fences.wait_in(device->copy_out(), error));
  }
  // Queued ones first: they travel while the CPU fills staging buffers.
  for (const Transfer& transfer : transfers) {
    if (!transfer.pageable()) {
      PAVO_TRY(queue_transfer(
          transfer, transfer.to_host() ? device->copy_out() : device->copy_in(), error));
    }
  }
  for (const Transfer& transfer : transfers) {
    if (transfer.pageable()) {
      PAVO_TRY(copy_staged(device, transfer, error));
    }
  }
  if (streams.in && streams.out) {
    Event event;
    PAVO_TRY(device->events().record(device->copy_out(), &event, error));
    PAVO_CUDA_TRY(cudaStreamWaitEvent(device->copy_in(), event.get(), 0));
  }
  return PAVO_OK;
}

}  // namespace

int32_t copy_regions(
    pavo_device* device,
    const pavo_copy_region* regions,
    uint32_t count,
    const Fences& fences,
    pavo_error* error) {
  if (count != 0 && regions == nullptr) {
    return sdk::fail(error, PAVO_ERROR_INVALID_ARGUMENT, "copy: expected regions, got NULL");
  }
  PAVO_TRY(fences.check(device, error));
  std::vector<Transfer> transfers;
  transfers.reserve(count);
  for (uint32_t i = 0; i < count; ++i) {
    PAVO_TRY(make_transfer(device, regions[i], &transfers, error));
  }
  pavo_error failure = {};
  failure.struct_size = sizeof failure;
  Streams streams = {};
  streams.out = std::any_of(
      transfers.begin(), transfers.end(), [](const Transfer& t) { return t.to_host(); });
  streams.in =
      !streams.out || !std::all_of(transfers.begin(), transfers.end(), [](const Transfer& t) {
        return t.to_host();
      });
  const int32_t code = queue_all(device, transfers, streams, fences, &failure);
  device->note(code, failure);
  return fences.signal_from(
      device, streams.signalling(*device), code == PAVO_OK ? nullptr : &failure, error);
}

}  // namespace pavo::cuda
