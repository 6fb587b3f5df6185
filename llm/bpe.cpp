#include "llm/bpe.h"

#include <algorithm>
#include <bit>

namespace pavo::llm {
namespace {

constexpr int32_t kGone = -1;
constexpr int32_t kEnd = -1;

}  // namespace

MergeTable::MergeTable(size_t merges) : slots_(std::bit_ceil(2 * merges + 1)) {}

size_t MergeTable::slot_of(int32_t left, int32_t right) const {
  // The odd number spreads neighbouring ids over the high bits, which the shift brings down.
  const uint64_t key = static_cast<uint64_t>(left) << 32 | static_cast<uint32_t>(right);
  const size_t mask = slots_.size() - 1;
  size_t slot = (key * 0x9e3779b97f4a7c15u) >> 32 & mask;
  while (slots_[slot].left >= 0 && (slots_[slot].left != left || slots_[slot].right != right)) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

void MergeTable::add(int32_t left, int32_t right, int32_t rank, int32_t merged) {
  Merge& slot = slots_[slot_of(left, right)];
  if (slot.left < 0) {
    slot = {left, right, rank, merged};
  }
}

const MergeTable::Merge* MergeTable::find(int32_t left, int32_t right) const {
  if (slots_.empty()) {
    return nullptr;
  }
  const Merge& slot = slots_[slot_of(left, right)];
  return slot.left < 0 ? nullptr : &slot;
}

void BpeMerger::consider(int32_t left) {
  if (left == kEnd || nodes_[left].next == kEnd) {
    return;
  }
  const int32_t left_token = nodes_[left].token;
  const int32_t right_token = nodes_[nodes_[left].next].token;
  const MergeTable::Merge* merge = table_.find(left_token, right_token);
  if (merge != nullptr) {
    heap_.push_back({merge->rank, left, left_token, right_token, merge->merged});
  }
}

void BpeMerger::merge(std::vector<int32_t>* tokens) {
  const auto later = [](const Candidate& a, const Candidate& b) {
    return a.rank != b.rank ? a.rank > b.rank : a.left > b.left;
  };
  const auto count = static_cast<int32_t>(tokens->size());
  nodes_.resize(tokens->size());
  heap_.clear();
  for (int32_t i = 0; i < count; ++i) {
    nodes_[i] = {(*tokens)[i], i - 1, i + 1 < count ? i + 1 : kEnd};
  }
  for (int32_t i = 0; i < count; ++i) {
    consider(i);
  }
  std::make_heap(heap_.begin(), heap_.end(), later);
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Candidate best = heap_.back();
    heap_.pop_back();
    Node& left = nodes_[best.left];
    if (left.token != best.left_token || left.next == kEnd ||
        nodes_[left.next].token != best.right_token) {
      continue;
    }
    Node& right = nodes_[left.next];
    left.token = best.merged;
    right.token = kGone;
    left.next = right.next;
    if (left.next != kEnd) {
      nodes_[left.next].previous = best.left;
    }
    for (const int32_t changed : {left.previous, best.left}) {
      const size_t before = heap_.size();
      consider(changed);
      if (heap_.size() != before) {
        std::push_heap(heap_.begin(), heap_.end(), later);
      }
    }
  }
  const auto gone = [](int32_t token) { return token == kGone; };
  std::transform(
      nodes_.begin(), nodes_.end(), tokens->begin(), [](const Node& node) { return node.token; });
  tokens->erase(std::remove_if(tokens->begin(), tokens->end(), gone), tokens->end());
}

}  // namespace pavo::llm
