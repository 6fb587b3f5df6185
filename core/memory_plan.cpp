#include "core/memory_plan.h"

#include <algorithm>
#include <numeric>

namespace pavo {

MemoryPlan plan_memory(std::span<const Lifetime> lifetimes, int64_t alignment) {
  std::vector<size_t> order(lifetimes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return lifetimes[a].size_bytes > lifetimes[b].size_bytes;
  });
  const auto align = [alignment](int64_t value) {
    return (value + alignment - 1) / alignment * alignment;
  };

  MemoryPlan plan;
  plan.offsets.assign(lifetimes.size(), 0);
  std::vector<size_t> placed;  // sorted by offset
  for (const size_t current : order) {
    const Lifetime& life = lifetimes[current];
    int64_t offset = 0;
    for (const size_t other : placed) {
      const bool overlaps =
          lifetimes[other].first <= life.last && life.first <= lifetimes[other].last;
      if (!overlaps) {
        continue;
      }
      if (offset + life.size_bytes <= plan.offsets[other]) {
        break;
      }
      offset = std::max(offset, align(plan.offsets[other] + lifetimes[other].size_bytes));
    }
    plan.offsets[current] = offset;
    plan.total_bytes = std::max(plan.total_bytes, align(offset + life.size_bytes));
    const auto at =
        std::upper_bound(placed.begin(), placed.end(), offset, [&](int64_t o, size_t p) {
          return o < plan.offsets[p];
        });
    placed.insert(at, current);
  }
  return plan;
}

}  // namespace pavo
