// One layer's K or V pages, with a replica on each device that stores into or reads from them.
//
// Replicas are kept coherent row by row: a store on one device marks those rows stale on the
// others, and a reader fetches only the rows that are stale on its device. So the bytes per step of
// a fallback do not grow with the context.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/graph.h"
#include "core/transfer.h"

namespace pavo {

class KvPool {
 public:
  // shape: [pages, heads, PAVO_KV_PAGE_ROWS, head dim] of a cache type.
  KvPool(std::string name, int32_t type, const Shape& shape);

  const std::string& name() const { return name_; }
  int32_t type() const { return type_; }
  const Shape& shape() const { return shape_; }
  int64_t size_bytes() const { return size_bytes_; }

  // Memory on the device, made at the first call (all rows that were ever stored are stale in it).
  Result<const Buffer*> replica(Device& device);
  // Rows that the device's kv_store wrote in this step: slot = page * PAVO_KV_PAGE_ROWS + row;
  // negative slots are skipped.
  void stored(const Device& device, std::span<const int32_t> slots);
  // Brings the device's replica up to date; *bytes_moved grows by what was copied.
  Status refresh(Device& device, std::vector<std::byte>& staging, int64_t* bytes_moved);

 private:
  struct Replica {
    Buffer buffer;
    std::vector<uint64_t> stale;  // one bit a row, one word a page
  };

  std::vector<CopyShape> regions_of(int64_t page, uint64_t rows) const;

  std::string name_;
  int32_t type_;
  Shape shape_;
  pavo_kv_layout layout_ = {};
  int64_t size_bytes_ = 0;
  std::vector<uint64_t> written_;  // rows that were ever stored
  std::map<Device*, Replica> replicas_;
};

}  // namespace pavo
