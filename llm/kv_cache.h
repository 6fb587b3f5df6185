// Which pages hold which rows of which sequence. Book-keeping only; the pages themselves are the
// KvPools of core, and one page number stands for that page in every layer's pools.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "pavo/quant.h"

#include "core/status.h"

namespace pavo::llm {

using SequenceId = int32_t;

// Not thread-safe.
class KvCache {
 public:
  // `context`: the most rows that one sequence may hold.
  KvCache(int64_t pages, int64_t context);

  SequenceId create();
  void release(SequenceId sequence);
  bool contains(SequenceId sequence) const { return sequences_.count(sequence) != 0; }

  // Makes room for `count` rows more; the new rows are length()..length()+count-1 until
  // commit() makes them part of the sequence. kInvalidArgument beyond the context, kOutOfMemory if
  // there are too few free pages; both leave everything as it was.
  Status reserve(SequenceId sequence, int64_t count);
  void commit(SequenceId sequence, int64_t count);
  // Forgets rows from `length` on.
  void truncate(SequenceId sequence, int64_t length);

  int64_t length(SequenceId sequence) const;
  const std::vector<int32_t>& pages(SequenceId sequence) const;
  // page * PAVO_KV_PAGE_ROWS + row in the page, of a reserved row.
  int32_t slot(SequenceId sequence, int64_t row) const;
  int64_t free_pages() const { return static_cast<int64_t>(free_.size()); }

 private:
  struct Sequence {
    std::vector<int32_t> pages;
    int64_t length = 0;
  };

  int64_t context_;
  SequenceId next_ = 0;
  std::vector<int32_t> free_;  // lowest page last, so that it is taken first
  std::map<SequenceId, Sequence> sequences_;
};

}  // namespace pavo::llm
