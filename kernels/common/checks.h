// What every node must satisfy, and the checks that predicates are made of. Each returns true, or
// writes a refusal that names operand, dimension, expected and actual value. Host only, pure.
//
// Operands are numbered as in verdicts: inputs first, then outputs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "kernels/common/kernel.h"

namespace pavo::cuda {

// Arity, indices, and each operand by itself: rank, sizes (none negative, nothing overflows), type,
// role, strides (last dimension dense, others non-negative multiples of 4, outputs do not overlap
// themselves). How operands fit together is the predicate's.
bool check_node(const NodeQuery& query, pavo_verdict* verdict);

class Checker {
 public:
  Checker(const NodeQuery& query, pavo_verdict* verdict) : query_(query), verdict_(verdict) {}

  // NULL if it is absent. Checks of an absent operand hold, so that optional ones need no `if`.
  const pavo_tensor* operand(uint32_t index) const;
  // Index of an output for the checks below. Kept apart from input indices, so that an optional
  // input beyond the node's last one is absent and not the first output.
  static constexpr uint32_t kFirstOutput = 1u << 16;
  static constexpr uint32_t output(uint32_t index) { return kFirstOutput + index; }
  // Operand number of a verdict: inputs first, then outputs.
  int32_t number(uint32_t index) const {
    return static_cast<int32_t>(
        index < kFirstOutput ? index : query_.node.input_count + index - kFirstOutput);
  }

  bool present(uint32_t operand);
  bool rank(uint32_t operand, int32_t rank);
  bool rank_at_least(uint32_t operand, int32_t rank);
  // `what` says where the expected value comes from: "K of x".
  bool dim(uint32_t operand, int32_t dimension, int64_t expected, const char* what);
  bool dim_range(uint32_t operand, int32_t dimension, int64_t least, int64_t most);
  bool dim_multiple(uint32_t operand, int32_t dimension, int64_t multiple);
  bool same_shape(uint32_t operand, uint32_t other);
  bool role(uint32_t operand, std::initializer_list<int32_t> roles);
  bool type(uint32_t operand, std::initializer_list<int32_t> types);
  // All present ones: f32, role activation.
  bool activations(std::initializer_list<uint32_t> operands);
  // All present ones: i32 that the host or an earlier node writes.
  bool indices(std::initializer_list<uint32_t> operands);
  // A weight of [count] that is read element by element.
  bool dense_weight(uint32_t operand, int64_t count);
  // Rows at one distance (RowMap::uniform).
  bool uniform_rows(uint32_t operand);
  // `offset`: of the field in the parameter struct.
  bool param_range(size_t offset, const char* name, int64_t value, int64_t least, int64_t most);
  bool param_finite(size_t offset, const char* name, double value);
  // Dynamic and static shared memory of one block, as the kernel computes them.
  bool shared_bytes(int64_t needed);

 private:
  const NodeQuery& query_;
  pavo_verdict* verdict_;
};

// Bytes that one run moves if every operand is read or written once: a weight at its packed size.
int64_t operand_bytes(const NodeQuery& query);
// Of one tensor: what it occupies in device memory without gaps. 0 for a K/V pool, of which a step
// touches a part that only the kernel knows.
int64_t tensor_bytes(const pavo_tensor& tensor);

}  // namespace pavo::cuda
