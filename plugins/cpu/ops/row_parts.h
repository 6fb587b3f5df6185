// How elementwise kernels share rows among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "plugins/cpu/kernel.h"
#include "plugins/cpu/tensor_view.h"
#include "plugins/cpu/thread_pool.h"

namespace pavo::cpu {

// Values below which waking a thread costs more than the work: some 3 us against 10 GB/s.
inline constexpr int64_t kValuesPerPart = 8192;

// Rows of `length` values that one thread should at least get.
inline int64_t row_grain(int64_t length) {
  return std::max<int64_t>(1, kValuesPerPart / std::max<int64_t>(1, length));
}

// First value of a row of an activation; NULL if the operand is absent.
inline float* row_of(const Operand& operand, int64_t row) {
  return operand ? reinterpret_cast<float*>(operand.data + row_offset(*operand.tensor, row))
                 : nullptr;
}

// Calls fn(row, begin, end) for pieces that together cover columns 0..length-1 of every row once;
// long rows are cut, so that a single row is shared too. fn runs on several threads.
template <typename Fn>
void for_each_piece(ThreadPool& pool, int64_t rows, int64_t length, const Fn& fn) {
  constexpr int64_t kPiece = kValuesPerPart;  // also a multiple of every vector
  const int64_t pieces = (length + kPiece - 1) / kPiece;
  const int64_t grain = row_grain(std::min(length, kPiece));
  pool.parallel_for(rows * pieces, grain, [&](int64_t first, int64_t last, int32_t) {
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i % pieces * kPiece;
      fn(i / pieces, begin, std::min(begin + kPiece, length));
    }
  });
}

}  // namespace pavo::cpu
