// Bookkeeping of memory cut from larger slabs: best fit, neighbours are joined when freed. Touches
// no memory itself, so that it serves device and pinned memory alike and is tested without a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

namespace pavo::cuda {

// Not synchronised; its owner is.
class BlockPool {
 public:
  // Every size is rounded up to this, so every block begins at a multiple of it within its slab.
  static constexpr int64_t kGranularity = 512;
  static int64_t rounded(int64_t size_bytes) {
    return (size_bytes + kGranularity - 1) / kGranularity * kGranularity;
  }

  // size_bytes > 0, a multiple of kGranularity. The slab is free at first.
  void add_slab(std::byte* base, int64_t size_bytes);

  // The smallest free block that fits, cut to size; NULL if there is none. size_bytes > 0.
  std::byte* take(int64_t size_bytes);

  // Gives back what take returned; the bytes that it had.
  int64_t give(std::byte* block);

  // Removes a slab that is wholly free, largest first; {NULL, 0} if there is none.
  std::pair<std::byte*, int64_t> remove_free_slab();

  int64_t used_bytes() const { return used_bytes_; }          // of the blocks that are taken
  int64_t reserved_bytes() const { return reserved_bytes_; }  // of all slabs
  int64_t largest_free_bytes() const { return free_.empty() ? 0 : free_.rbegin()->first; }

 private:
  struct Block {
    int64_t size_bytes;
    std::byte* slab;
    bool taken;
  };
  using Blocks = std::map<std::byte*, Block>;

  bool joins(Blocks::iterator left, Blocks::iterator right) const;

  Blocks blocks_;                                  // all, by address
  std::set<std::pair<int64_t, std::byte*>> free_;  // by size
  std::map<std::byte*, int64_t> slabs_;            // base to size
  int64_t used_bytes_ = 0;
  int64_t reserved_bytes_ = 0;
};

}  // namespace pavo::cuda
