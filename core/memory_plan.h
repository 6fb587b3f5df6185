// Lifetimes to offsets: where each activation lies in a device's arena. A pure function.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace pavo {

// A tensor is live from step first to step last, both included.
struct Lifetime {
  int64_t size_bytes = 0;
  int32_t first = 0;
  int32_t last = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // one a lifetime, multiples of the alignment
  int64_t total_bytes = 0;
};

// Places the largest first, each at the lowest offset where no overlapping lifetime lies. Two
// tensors share bytes only if their lifetimes do not touch.
MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, int64_t alignment = 256);

}  // namespace pavo
