// Byte-pair merges: which two neighbouring tokens become one, and in which order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pavo::llm {

class MergeTable {
 public:
  MergeTable() = default;
  explicit MergeTable(size_t merges);  // room for so many

  // Lower ranks merge first. Of a pair added twice the first counts. Ids are not negative.
  void add(int32_t left, int32_t right, int32_t rank, int32_t merged);

  struct Merge {
    int32_t left = -1;  // -1: a free place of the table
    int32_t right = -1;
    int32_t rank = 0;
    int32_t merged = 0;
  };
  // nullptr if the two do not merge.
  const Merge* find(int32_t left, int32_t right) const;

 private:
  size_t slot_of(int32_t left, int32_t right) const;

  std::vector<Merge> slots_;  // open addressing, at most half full
};

// Applies merges until none is left. Holds scratch memory, so one thread at a time.
class BpeMerger {
 public:
  explicit BpeMerger(const MergeTable& table) : table_(table) {}  // the table must outlive it

  // Merges the tokens in place: always the pair of lowest rank, of equal ones the first. Time is
  // n log n, so a megabyte without a space is fine. At most 2^31 - 1 tokens.
  void merge(std::vector<int32_t>* tokens);

 private:
  // A doubly linked list over the piece; an absorbed token has id kGone.
  struct Node {
    int32_t token;
    int32_t previous;
    int32_t next;
  };
  // A pair that could merge when it was seen; outdated ones are skipped.
  struct Candidate {
    int32_t rank;
    int32_t left;
    int32_t left_token;
    int32_t right_token;
    int32_t merged;
  };

  void consider(int32_t left);

  const MergeTable& table_;
  std::vector<Node> nodes_;
  std::vector<Candidate> heap_;
};

}  // namespace pavo::llm
