#include "plugins/cpu/checks.h"

#include <algorithm>
#include <array>
#include <cinttypes>

#include "plugins/cpu/checker.h"
#include "plugins/cpu/op_info.h"
#include "plugins/cpu/tensor_view.h"

namespace pavo::cpu {
namespace {

using sdk::refuse;

bool check_arity(const NodeQuery& query, pavo_verdict* verdict) {
  const OpInfo& op = *find_op(query.node.op);
  const uint32_t inputs = query.node.input_count;
  const uint32_t outputs = query.node.output_count;
  if (inputs < op.inputs_min || inputs > op.inputs_max) {
    return refuse(
        verdict,
        PAVO_REASON_OPERAND,
        -1,
        -1,
        op.inputs_min,
        inputs,
        "expected %u to %u inputs, got %u",
        op.inputs_min,
        op.inputs_max,
        inputs);
  }
  if (outputs < op.outputs_min || outputs > op.outputs_max) {
    return refuse(
        verdict,
        PAVO_REASON_OPERAND,
        -1,
        -1,
        op.outputs_min,
        outputs,
        "expected %u to %u outputs, got %u",
        op.outputs_min,
        op.outputs_max,
        outputs);
  }
  return true;
}

bool check_index(const NodeQuery& query, uint32_t operand, pavo_verdict* verdict) {
  const OpInfo& op = *find_op(query.node.op);
  const bool is_input = operand < query.node.input_count;
  const uint32_t position = is_input ? operand : operand - query.node.input_count;
  const uint32_t index = is_input ? query.node.inputs[position] : query.node.outputs[position];
  const auto number = static_cast<int32_t>(operand);
  if (index == PAVO_NO_TENSOR) {
    // Optional inputs may lie before the last one; which of them an op needs, its predicate knows.
    if (is_input || position >= op.outputs_min) {
      return true;
    }
    return refuse(
        verdict, PAVO_REASON_OPERAND, number, -1, 0, index, "output %u is missing", position);
  }
  if (index >= query.graph.tensor_count) {
    return refuse(
        verdict,
        PAVO_REASON_OPERAND,
        number,
        -1,
        query.graph.tensor_count,
        index,
        "tensor index %u, but the graph has %u tensors",
        index,
        query.graph.tensor_count);
  }
  return true;
}

bool check_shape(const pavo_tensor& tensor, int32_t operand, pavo_verdict* verdict) {
  if (tensor.rank < 0 || tensor.rank > PAVO_MAX_RANK) {
    return refuse(
        verdict,
        PAVO_REASON_SHAPE_RANGE,
        operand,
        -1,
        PAVO_MAX_RANK,
        tensor.rank,
        "expected a rank of 0 to %d, got %d",
        PAVO_MAX_RANK,
        tensor.rank);
  }
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] < 0) {
      return refuse(
          verdict,
          PAVO_REASON_SHAPE_RANGE,
          operand,
          i,
          0,
          tensor.shape[i],
          "dimension %d is negative: %" PRId64,
          i,
          tensor.shape[i]);
    }
  }
  return true;
}

bool check_type(const pavo_tensor& tensor, int32_t operand, pavo_verdict* verdict) {
  bool known = pavo_type_block_values(tensor.type) != 0;
  if (tensor.role == PAVO_ROLE_ACTIVATION || tensor.role == PAVO_ROLE_STEP) {
    known = tensor.type == PAVO_TYPE_F32 || tensor.type == PAVO_TYPE_I32;
  } else if (tensor.role == PAVO_ROLE_STATE) {
    known = tensor.type == PAVO_TYPE_F32;
  } else if (tensor.role != PAVO_ROLE_WEIGHT && tensor.role != PAVO_ROLE_KV_POOL) {
    return refuse(
        verdict,
        PAVO_REASON_ROLE,
        operand,
        -1,
        PAVO_ROLE_STATE,
        tensor.role,
        "unknown role %d",
        tensor.role);
  }
  return known || refuse(
                      verdict,
                      PAVO_REASON_TYPE,
                      operand,
                      -1,
                      PAVO_TYPE_F32,
                      tensor.type,
                      "type %d (%s) cannot be a %s",
                      tensor.type,
                      pavo_type_name(tensor.type),
                      role_name(tensor.role));
}

bool check_strides(const pavo_tensor& tensor, int32_t operand, pavo_verdict* verdict) {
  if (!has_strides(tensor)) {
    return true;
  }
  for (int32_t i = 0; i < tensor.rank; ++i) {
    const bool last = i == tensor.rank - 1;
    if (tensor.shape[i] <= 1) {
      continue;
    }
    if (tensor.stride[i] < 0 || tensor.stride[i] % 4 != 0 || (last && tensor.stride[i] != 4)) {
      return refuse(
          verdict,
          PAVO_REASON_STRIDE,
          operand,
          i,
          4,
          tensor.stride[i],
          "expected %s, got %" PRId64,
          last ? "a last stride of 4 bytes" : "a stride that is a multiple of 4 bytes",
          tensor.stride[i]);
    }
  }
  return true;
}

// Rows of an output that share bytes would be written by several threads.
bool check_no_overlap(const pavo_tensor& tensor, int32_t operand, pavo_verdict* verdict) {
  struct Dimension {
    int64_t stride;
    int64_t steps;
    int32_t index;
  };
  std::array<Dimension, PAVO_MAX_RANK> order{};  // those of one element only take no step
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] > 1) {
      order[static_cast<size_t>(i)] = {tensor.stride[i], tensor.shape[i] - 1, i};
    }
  }
  std::sort(order.begin(), order.end(), [](const Dimension& a, const Dimension& b) {
    return a.stride < b.stride;
  });
  int64_t end = 4;
  for (const Dimension& dimension : order) {
    if (dimension.steps != 0 && dimension.stride < end) {
      return refuse(
          verdict,
          PAVO_REASON_STRIDE,
          operand,
          dimension.index,
          end,
          dimension.stride,
          "elements of the output overlap: expected a stride of at least %" PRId64 ", got %" PRId64,
          end,
          dimension.stride);
    }
    end += dimension.steps * dimension.stride;
  }
  return true;
}

bool check_operand(
    const pavo_tensor& tensor, int32_t operand, bool is_output, pavo_verdict* verdict) {
  if (!check_shape(tensor, operand, verdict) || !check_type(tensor, operand, verdict) ||
      !check_strides(tensor, operand, verdict)) {
    return false;
  }
  if (tensor.role == PAVO_ROLE_KV_POOL && tensor.rank == 4 &&
      tensor.shape[2] != PAVO_KV_PAGE_ROWS) {
    return refuse(
        verdict,
        PAVO_REASON_SHAPE_MISMATCH,
        operand,
        2,
        PAVO_KV_PAGE_ROWS,
        tensor.shape[2],
        "expected %d rows in a page, got %" PRId64,
        PAVO_KV_PAGE_ROWS,
        tensor.shape[2]);
  }
  if (extent_bytes(tensor) < 0) {
    return refuse(
        verdict,
        PAVO_REASON_SHAPE_RANGE,
        operand,
        -1,
        0,
        0,
        "the sizes make no %s tensor of %s: not whole blocks, or too large",
        role_name(tensor.role),
        pavo_type_name(tensor.type));
  }
  return !is_output || !has_strides(tensor) || extent_bytes(tensor) == 0 ||
         check_no_overlap(tensor, operand, verdict);
}

}  // namespace

bool check_node(const NodeQuery& query, pavo_verdict* verdict) {
  if (!check_arity(query, verdict)) {
    return false;
  }
  for (uint32_t i = 0; i < query.node.input_count + query.node.output_count; ++i) {
    if (!check_index(query, i, verdict)) {
      return false;
    }
    const uint32_t inputs = query.node.input_count;
    const pavo_tensor* tensor = i < inputs ? query.input(i) : query.output(i - inputs);
    if (tensor != nullptr &&
        !check_operand(*tensor, static_cast<int32_t>(i), i >= query.node.input_count, verdict)) {
      return false;
    }
  }
  return true;
}

}  // namespace pavo::cpu
