#include "kernels/host/block_pool.h"

#include <iterator>

namespace pavo::cuda {

void BlockPool::add_slab(std::byte* base, int64_t size_bytes) {
  slabs_.emplace(base, size_bytes);
  blocks_.emplace(base, Block{size_bytes, base, false});
  free_.emplace(size_bytes, base);
  reserved_bytes_ += size_bytes;
}

std::byte* BlockPool::take(int64_t size_bytes) {
  const int64_t size = rounded(size_bytes);
  const auto fit = free_.lower_bound({size, nullptr});
  if (fit == free_.end()) {
    return nullptr;
  }
  std::byte* address = fit->second;
  free_.erase(fit);
  Block& block = blocks_.at(address);
  block.taken = true;
  if (const int64_t rest = block.size_bytes - size; rest > 0) {
    block.size_bytes = size;
    blocks_.emplace(address + size, Block{rest, block.slab, false});
    free_.emplace(rest, address + size);
  }
  used_bytes_ += size;
  return address;
}

bool BlockPool::joins(Blocks::iterator left, Blocks::iterator right) const {
  return !left->second.taken && !right->second.taken && left->second.slab == right->second.slab;
}

int64_t BlockPool::give(std::byte* block) {
  auto at = blocks_.find(block);
  const int64_t size = at->second.size_bytes;
  at->second.taken = false;
  used_bytes_ -= size;
  if (const auto next = std::next(at); next != blocks_.end() && joins(at, next)) {
    free_.erase({next->second.size_bytes, next->first});
    at->second.size_bytes += next->second.size_bytes;
    blocks_.erase(next);
  }
  if (at != blocks_.begin() && joins(std::prev(at), at)) {
    const auto previous = std::prev(at);
    free_.erase({previous->second.size_bytes, previous->first});
    previous->second.size_bytes += at->second.size_bytes;
    blocks_.erase(at);
    at = previous;
  }
  free_.emplace(at->second.size_bytes, at->first);
  return size;
}

std::pair<std::byte*, int64_t> BlockPool::remove_free_slab() {
  for (auto free = free_.rbegin(); free != free_.rend(); ++free) {
    const auto [size, address] = *free;
    const auto slab = slabs_.find(address);
    if (slab != slabs_.end() && slab->second == size) {
      free_.erase(*free);
      blocks_.erase(address);
      slabs_.erase(slab);
      reserved_bytes_ -= size;
      return {address, size};
    }
  }
  return {nullptr, 0};
}

}  // namespace pavo::cuda
