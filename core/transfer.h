// Copies between devices. Plugins copy between their own buffers and host memory; whatever goes
// from one device to another passes through an address that the host can see.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/device.h"

namespace pavo {

// One side of a copy: a buffer of a device.
struct Place {
  Device* device;
  const Buffer* buffer;
};

// Offsets and pitches in bytes, as pavo_copy_region.
struct CopyShape {
  int64_t src_offset, dst_offset;
  int64_t row_bytes, rows;
  int64_t src_pitch, dst_pitch;
};

// Copies all regions; returns when the source may be reused and later work on the destination
// device sees the data. `staging` is grown as needed and only used between two devices whose memory
// the host cannot see.
Status transfer(
    const Place& src,
    const Place& dst,
    std::span<const CopyShape> regions,
    std::vector<std::byte>& staging);

// Host memory to a buffer (src must stay valid until device.wait()) and back (waits).
Status upload(const Place& dst, const void* src, int64_t offset, int64_t size_bytes);
Status download(const Place& src, void* dst, int64_t offset, int64_t size_bytes);

}  // namespace pavo
