#include "core/transfer.h"

#include <cstring>

namespace pavo {
namespace {

pavo_copy_region region_of(const CopyShape& shape) {
  pavo_copy_region region = {};
  region.src_offset = shape.src_offset;
  region.dst_offset = shape.dst_offset;
  region.row_bytes = shape.row_bytes;
  region.rows = shape.rows;
  region.src_pitch = shape.src_pitch;
  region.dst_pitch = shape.dst_pitch;
  return region;
}

// Source device writes straight into the destination's host-visible memory.
Status pull(const Place& src, const Place& dst, std::span<const CopyShape> shapes) {
  std::vector<pavo_copy_region> regions;
  for (const CopyShape& shape : shapes) {
    pavo_copy_region& region = regions.emplace_back(region_of(shape));
    region.src = src.buffer->get();
    region.dst_host = dst.buffer->host();
  }
  PAVO_RETURN_IF_ERROR(dst.device->wait());  // earlier readers of the destination
  PAVO_RETURN_IF_ERROR(src.device->copy(regions));
  return src.device->wait();
}

// Destination device reads the source's host-visible memory.
Status push(const Place& src, const Place& dst, std::span<const CopyShape> shapes) {
  std::vector<pavo_copy_region> regions;
  for (const CopyShape& shape : shapes) {
    pavo_copy_region& region = regions.emplace_back(region_of(shape));
    region.src_host = src.buffer->host();
    region.dst = dst.buffer->get();
  }
  PAVO_RETURN_IF_ERROR(src.device->wait());
  PAVO_RETURN_IF_ERROR(dst.device->copy(regions));
  return dst.device->wait();  // the source may be overwritten next
}

Status through_staging(
    const Place& src,
    const Place& dst,
    std::span<const CopyShape> shapes,
    std::vector<std::byte>& staging) {
  std::vector<pavo_copy_region> out;
  std::vector<pavo_copy_region> in;
  int64_t used = 0;
  for (const CopyShape& shape : shapes) {
    pavo_copy_region& first = out.emplace_back(region_of(shape));
    pavo_copy_region& second = in.emplace_back(region_of(shape));
    first.src = src.buffer->get();
    first.dst_offset = used;
    first.dst_pitch = shape.row_bytes;
    second.dst = dst.buffer->get();
    second.src_offset = used;
    second.src_pitch = shape.row_bytes;
    used += shape.row_bytes * shape.rows;
  }
  if (staging.size() < static_cast<size_t>(used)) {
    staging.resize(static_cast<size_t>(used));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    out[i].dst_host = staging.data();
    in[i].src_host = staging.data();
  }
  PAVO_RETURN_IF_ERROR(src.device->copy(out));
  PAVO_RETURN_IF_ERROR(src.device->wait());
  PAVO_RETURN_IF_ERROR(dst.device->copy(in));
  return dst.device->wait();
}

}  // namespace

Status transfer(
    const Place& src,
    const Place& dst,
    std::span<const CopyShape> regions,
    std::vector<std::byte>& staging) {
  if (regions.empty()) {
    return Status();
  }
  if (dst.buffer->host() != nullptr) {
    return pull(src, dst, regions);
  }
  if (src.buffer->host() != nullptr) {
    return push(src, dst, regions);
  }
  return through_staging(src, dst, regions, staging);
}

Status upload(const Place& dst, const void* src, int64_t offset, int64_t size_bytes) {
  pavo_copy_region region = {};
  region.src_host = src;
  region.dst = dst.buffer->get();
  region.dst_offset = offset;
  region.row_bytes = size_bytes;
  region.rows = 1;
  region.src_pitch = size_bytes;
  region.dst_pitch = size_bytes;
  return dst.device->copy({&region, 1});
}

Status download(const Place& src, void* dst, int64_t offset, int64_t size_bytes) {
  pavo_copy_region region = {};
  region.src = src.buffer->get();
  region.dst_host = dst;
  region.src_offset = offset;
  region.row_bytes = size_bytes;
  region.rows = 1;
  region.src_pitch = size_bytes;
  region.dst_pitch = size_bytes;
  PAVO_RETURN_IF_ERROR(src.device->copy({&region, 1}));
  return src.device->wait();
}

}  // namespace pavo
