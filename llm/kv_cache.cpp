#include "llm/kv_cache.h"

#include <string>

namespace pavo::llm {
namespace {

int64_t pages_for(int64_t rows) {
  return (rows + PAVO_KV_PAGE_ROWS - 1) / PAVO_KV_PAGE_ROWS;
}

}  // namespace

KvCache::KvCache(int64_t pages, int64_t context) : context_(context) {
  for (int64_t page = pages - 1; page >= 0; --page) {
    free_.push_back(static_cast<int32_t>(page));
  }
}

SequenceId KvCache::create() {
  sequences_.emplace(next_, Sequence{});
  return next_++;
}

void KvCache::release(SequenceId sequence) {
  truncate(sequence, 0);
  sequences_.erase(sequence);
}

Status KvCache::reserve(SequenceId sequence, int64_t count) {
  Sequence& own = sequences_.at(sequence);
  const int64_t rows = own.length + count;
  if (rows > context_) {
    return Status(
        Code::kInvalidArgument,
        "the sequence would hold " + std::to_string(rows) + " tokens, but the context is " +
            std::to_string(context_) + "; ask for a larger one with -c or shorten the text");
  }
  const int64_t missing = pages_for(rows) - static_cast<int64_t>(own.pages.size());
  if (missing > free_pages()) {
    return Status(
        Code::kOutOfMemory,
        "expected " + std::to_string(missing) + " free K/V pages, got " +
            std::to_string(free_pages()) + "; fewer sequences or a smaller context would fit");
  }
  for (int64_t i = 0; i < missing; ++i) {
    own.pages.push_back(free_.back());
    free_.pop_back();
  }
  return Status();
}

void KvCache::commit(SequenceId sequence, int64_t count) {
  sequences_.at(sequence).length += count;
}

void KvCache::truncate(SequenceId sequence, int64_t length) {
  Sequence& own = sequences_.at(sequence);
  own.length = length < own.length ? length : own.length;
  while (static_cast<int64_t>(own.pages.size()) > pages_for(own.length)) {
    free_.push_back(own.pages.back());
    own.pages.pop_back();
  }
}

int64_t KvCache::length(SequenceId sequence) const {
  return sequences_.at(sequence).length;
}

const std::vector<int32_t>& KvCache::pages(SequenceId sequence) const {
  return sequences_.at(sequence).pages;
}

int32_t KvCache::slot(SequenceId sequence, int64_t row) const {
  const Sequence& own = sequences_.at(sequence);
  const int32_t page = own.pages[static_cast<size_t>(row / PAVO_KV_PAGE_ROWS)];
  return page * PAVO_KV_PAGE_ROWS + static_cast<int32_t>(row % PAVO_KV_PAGE_ROWS);
}

}  // namespace pavo::llm
