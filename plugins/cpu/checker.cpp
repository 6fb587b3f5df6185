#include "plugins/cpu/checker.h"

#include <algorithm>
#include <cinttypes>
#include <cmath>

#include "plugins/cpu/dequantize.h"
#include "plugins/cpu/tensor_view.h"

namespace pavo::cpu {

using sdk::refuse;

const char* role_name(int32_t role) {
  constexpr const char* kNames[] = {"activation", "weight", "K/V pool", "step", "state"};
  return role >= 0 && role < static_cast<int32_t>(std::size(kNames)) ? kNames[role] : "?";
}

const pavo_tensor* Checker::operand(uint32_t index) const {
  return index < kOutputs ? query_.input(index) : query_.output(index - kOutputs);
}

int32_t Checker::number(uint32_t index) const {
  const uint32_t inputs = query_.node.input_count;
  return static_cast<int32_t>(index < kOutputs ? index : inputs + index - kOutputs);
}

bool Checker::present(uint32_t index) {
  return operand(index) != nullptr || refuse(
                                          verdict_,
                                          PAVO_REASON_OPERAND,
                                          number(index),
                                          -1,
                                          1,
                                          0,
                                          "operand %u is missing",
                                          index);
}

bool Checker::rank(uint32_t index, int32_t rank) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || tensor->rank == rank ||
         refuse(
             verdict_,
             PAVO_REASON_SHAPE_MISMATCH,
             number(index),
             -1,
             rank,
             tensor->rank,
             "expected rank %d, got %d",
             rank,
             tensor->rank);
}

bool Checker::rank_at_least(uint32_t index, int32_t rank) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || tensor->rank >= rank ||
         refuse(
             verdict_,
             PAVO_REASON_SHAPE_MISMATCH,
             number(index),
             -1,
             rank,
             tensor->rank,
             "expected at least rank %d, got %d",
             rank,
             tensor->rank);
}

bool Checker::dim(uint32_t index, int32_t dimension, int64_t expected, const char* what) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || tensor->shape[dimension] == expected ||
         refuse(
             verdict_,
             PAVO_REASON_SHAPE_MISMATCH,
             number(index),
             dimension,
             expected,
             tensor->shape[dimension],
             "expected dimension %d to be %" PRId64 " (%s), got %" PRId64,
             dimension,
             expected,
             what,
             tensor->shape[dimension]);
}

bool Checker::dim_at_least(uint32_t index, int32_t dimension, int64_t least) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || tensor->shape[dimension] >= least ||
         refuse(
             verdict_,
             PAVO_REASON_SHAPE_RANGE,
             number(index),
             dimension,
             least,
             tensor->shape[dimension],
             "expected dimension %d to be at least %" PRId64 ", got %" PRId64,
             dimension,
             least,
             tensor->shape[dimension]);
}

bool Checker::dim_at_most(uint32_t index, int32_t dimension, int64_t most) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || tensor->shape[dimension] <= most ||
         refuse(
             verdict_,
             PAVO_REASON_SHAPE_RANGE,
             number(index),
             dimension,
             most,
             tensor->shape[dimension],
             "expected dimension %d to be at most %" PRId64 ", got %" PRId64,
             dimension,
             most,
             tensor->shape[dimension]);
}

bool Checker::same_shape(uint32_t index, uint32_t other) {
  const pavo_tensor* tensor = operand(index);
  const pavo_tensor* model = operand(other);
  if (tensor == nullptr || model == nullptr) {
    return true;
  }
  if (!rank(index, model->rank)) {
    return false;
  }
  for (int32_t i = 0; i < model->rank; ++i) {
    if (!dim(index, i, model->shape[i], "as the first operand")) {
      return false;
    }
  }
  return true;
}

bool Checker::role(uint32_t index, std::initializer_list<int32_t> roles) {
  const pavo_tensor* tensor = operand(index);
  if (tensor == nullptr || std::find(roles.begin(), roles.end(), tensor->role) != roles.end()) {
    return true;
  }
  return refuse(
      verdict_,
      PAVO_REASON_ROLE,
      number(index),
      -1,
      *roles.begin(),
      tensor->role,
      "expected a tensor of role %s, got %s",
      role_name(*roles.begin()),
      role_name(tensor->role));
}

bool Checker::type(uint32_t index, std::initializer_list<int32_t> types) {
  const pavo_tensor* tensor = operand(index);
  if (tensor == nullptr || std::find(types.begin(), types.end(), tensor->type) != types.end()) {
    return true;
  }
  return refuse(
      verdict_,
      PAVO_REASON_TYPE,
      number(index),
      -1,
      *types.begin(),
      tensor->type,
      "expected type %s, got %s",
      pavo_type_name(*types.begin()),
      pavo_type_name(tensor->type));
}

bool Checker::activations(std::initializer_list<uint32_t> operands) {
  return std::all_of(operands.begin(), operands.end(), [this](uint32_t index) {
    return role(index, {PAVO_ROLE_ACTIVATION}) && type(index, {PAVO_TYPE_F32});
  });
}

bool Checker::indices(std::initializer_list<uint32_t> operands) {
  return std::all_of(operands.begin(), operands.end(), [this](uint32_t index) {
    return role(index, {PAVO_ROLE_STEP, PAVO_ROLE_ACTIVATION}) && type(index, {PAVO_TYPE_I32});
  });
}

bool Checker::dequantizable(uint32_t index) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || can_dequantize(tensor->type) ||
         refuse(
             verdict_,
             PAVO_REASON_TYPE,
             number(index),
             -1,
             PAVO_TYPE_F32,
             tensor->type,
             "tensors of type %s are not read",
             pavo_type_name(tensor->type));
}

bool Checker::dense_weight(uint32_t index, int64_t count) {
  return role(index, {PAVO_ROLE_WEIGHT}) && rank(index, 1) &&
         dim(index, 0, count, "values of the rows") && dequantizable(index);
}

bool Checker::kv_pool(uint32_t index) {
  const pavo_tensor* tensor = operand(index);
  if (tensor == nullptr) {
    return true;
  }
  if (!role(index, {PAVO_ROLE_KV_POOL}) || !rank(index, 4) ||
      !dim(index, 2, PAVO_KV_PAGE_ROWS, "rows of a page")) {
    return false;
  }
  return can_dequantize_kv(tensor->type) ||
         refuse(
             verdict_,
             PAVO_REASON_TYPE,
             number(index),
             -1,
             PAVO_TYPE_F16,
             tensor->type,
             "K/V pages of type %s are not read; use f32, f16, bf16 or q8_0",
             pavo_type_name(tensor->type));
}

bool Checker::param_range(
    size_t offset, const char* name, int64_t value, int64_t least, int64_t most) {
  return (value >= least && value <= most) ||
         refuse(
             verdict_,
             PAVO_REASON_PARAM,
             -1,
             static_cast<int32_t>(offset),
             least,
             value,
             "expected %s in %" PRId64 "..%" PRId64 ", got %" PRId64,
             name,
             least,
             most,
             value);
}

bool Checker::param_finite(size_t offset, const char* name, double value) {
  return std::isfinite(value) || refuse(
                                     verdict_,
                                     PAVO_REASON_PARAM,
                                     -1,
                                     static_cast<int32_t>(offset),
                                     0,
                                     0,
                                     "expected a finite %s, got %g",
                                     name,
                                     value);
}

bool Checker::param_at_least(size_t offset, const char* name, double value, double least) {
  return (std::isfinite(value) && value >= least) || refuse(
                                                         verdict_,
                                                         PAVO_REASON_PARAM,
                                                         -1,
                                                         static_cast<int32_t>(offset),
                                                         static_cast<int64_t>(least),
                                                         0,
                                                         "expected %s to be at least %g, got %g",
                                                         name,
                                                         least,
                                                         value);
}

bool Checker::uniform_rows(uint32_t index) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || uniform_pitch(*tensor) >= 0 ||
         refuse(
             verdict_,
             PAVO_REASON_STRIDE,
             number(index),
             0,
             0,
             tensor->stride[0],
             "expected rows at one distance");
}

}  // namespace pavo::cpu
