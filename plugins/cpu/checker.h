// What predicates are made of: each check returns true, or writes a refusal that names operand,
// dimension, expected and actual value. An operand that is absent passes all but present().
//
// An operand is an input's position, or output(position).
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

#include "plugins/cpu/kernel.h"

namespace pavo::cpu {

const char* role_name(int32_t role);

class Checker {
 public:
  Checker(const NodeQuery& query, pavo_verdict* verdict) : query_(query), verdict_(verdict) {}

  // NULL if it is absent.
  const pavo_tensor* operand(uint32_t index) const;
  static constexpr uint32_t output(uint32_t index) { return kOutputs + index; }

  bool present(uint32_t operand);
  bool rank(uint32_t operand, int32_t rank);
  bool rank_at_least(uint32_t operand, int32_t rank);
  // `what` says where the expected value comes from: "K of x".
  bool dim(uint32_t operand, int32_t dimension, int64_t expected, const char* what);
  bool dim_at_least(uint32_t operand, int32_t dimension, int64_t least);
  bool dim_at_most(uint32_t operand, int32_t dimension, int64_t most);
  bool same_shape(uint32_t operand, uint32_t other);
  bool role(uint32_t operand, std::initializer_list<int32_t> roles);
  bool type(uint32_t operand, std::initializer_list<int32_t> types);
  // All present ones among the operands: f32, role activation.
  bool activations(std::initializer_list<uint32_t> operands);
  // All present ones: i32 that the host or an earlier node writes.
  bool indices(std::initializer_list<uint32_t> operands);
  // Rows that dequantize_row decodes.
  bool dequantizable(uint32_t operand);
  // If present: a weight of any type that dequantize_row knows with exactly `count` values.
  bool dense_weight(uint32_t operand, int64_t count);
  // A K/V pool whose type has a page layout that dequantize_kv_row knows.
  bool kv_pool(uint32_t operand);
  // `offset`: of the field in the parameter struct.
  bool param_range(size_t offset, const char* name, int64_t value, int64_t least, int64_t most);
  bool param_finite(size_t offset, const char* name, double value);
  // Finite, and not below `least`.
  bool param_at_least(size_t offset, const char* name, double value, double least);
  // Rows at one pitch, what a fast kernel usually wants.
  bool uniform_rows(uint32_t operand);

 private:
  // Optional inputs may lack, so outputs cannot be numbered from input_count here.
  static constexpr uint32_t kOutputs = 1U << 16;

  // As verdicts number it: inputs first, then outputs.
  int32_t number(uint32_t operand) const;

  const NodeQuery& query_;
  pavo_verdict* verdict_;
};

}  // namespace pavo::cpu
