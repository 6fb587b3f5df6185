#include "core/kv_pool.h"

#include <bit>

namespace pavo {

static_assert(PAVO_KV_PAGE_ROWS == 64, "a page's rows are one 64-bit word of marks");

KvPool::KvPool(std::string name, int32_t type, const Shape& shape)
    : name_(std::move(name)), type_(type), shape_(shape) {
  if (pavo_kv_layout_init(type, shape[3], &layout_) == 0) {
    size_bytes_ = shape[0] * shape[1] * layout_.head_bytes;
  }
  written_.assign(static_cast<size_t>(shape[0]), 0);
}

Result<const Buffer*> KvPool::replica(Device& device) {
  const auto found = replicas_.find(&device);
  if (found != replicas_.end()) {
    return static_cast<const Buffer*>(&found->second.buffer);
  }
  PAVO_ASSIGN_OR_RETURN(Buffer buffer, device.create_buffer(size_bytes_));
  const auto [at, inserted] = replicas_.emplace(&device, Replica{std::move(buffer), written_});
  return static_cast<const Buffer*>(&at->second.buffer);
}

void KvPool::stored(const Device& device, std::span<const int32_t> slots) {
  for (const int32_t slot : slots) {
    if (slot < 0 || slot / PAVO_KV_PAGE_ROWS >= shape_[0]) {
      continue;
    }
    const auto page = static_cast<size_t>(slot / PAVO_KV_PAGE_ROWS);
    const uint64_t bit = uint64_t{1} << (slot % PAVO_KV_PAGE_ROWS);
    written_[page] |= bit;
    for (auto& [owner, replica] : replicas_) {
      if (owner == &device) {
        replica.stale[page] &= ~bit;
      } else {
        replica.stale[page] |= bit;
      }
    }
  }
}

std::vector<CopyShape> KvPool::regions_of(int64_t page, uint64_t rows) const {
  const int64_t parts[][2] = {
      {layout_.low_offset, layout_.low_row_bytes},
      {layout_.high_offset, layout_.high_row_bytes},
      {layout_.scale_offset, layout_.scale_row_bytes},
      {layout_.min_offset, layout_.min_row_bytes}};
  const int64_t page_offset = page * shape_[1] * layout_.head_bytes;
  std::vector<CopyShape> regions;
  while (rows != 0) {  // one run of consecutive rows after the other
    const int first = std::countr_zero(rows);
    const int count = std::countr_one(rows >> first);
    rows &= count == 64 ? 0 : ~(((uint64_t{1} << count) - 1) << first);
    for (const auto& [offset, row_bytes] : parts) {
      if (row_bytes != 0) {
        const int64_t start = page_offset + offset + first * row_bytes;
        regions.push_back(
            {start, start, count * row_bytes, shape_[1], layout_.head_bytes, layout_.head_bytes});
      }
    }
  }
  return regions;
}

Status KvPool::refresh(Device& device, std::vector<std::byte>& staging, int64_t* bytes_moved) {
  Replica& own = replicas_.at(&device);
  for (auto& [owner, source] : replicas_) {
    if (&source == &own) {
      continue;
    }
    std::vector<CopyShape> regions;
    int64_t bytes = 0;
    for (size_t page = 0; page < own.stale.size(); ++page) {
      const uint64_t rows = own.stale[page] & ~source.stale[page];
      for (const CopyShape& region : regions_of(static_cast<int64_t>(page), rows)) {
        regions.push_back(region);
        bytes += region.row_bytes * region.rows;
      }
    }
    PAVO_RETURN_IF_ERROR(
        transfer({owner, &source.buffer}, {&device, &own.buffer}, regions, staging));
    for (size_t page = 0; page < own.stale.size(); ++page) {
      own.stale[page] &= source.stale[page];
    }
    *bytes_moved += bytes;
  }
  return Status();
}

}  // namespace pavo
