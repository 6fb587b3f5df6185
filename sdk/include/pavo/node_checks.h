// C++17: what holds for every node of every op, checked before a kernel's own rules: arity,
// indices, ranks, sizes that fit into memory, outputs whose elements do not overlap.
#pragma once

#include <algorithm>
#include <cinttypes>
#include <numeric>
#include <string>
#include <vector>

#include "pavo/graph_copy.h"

namespace pavo::sdk {

// An operand by its position.
struct Operand {
  bool is_output;
  uint32_t index;
};
constexpr Operand in(uint32_t index) {
  return {false, index};
}
constexpr Operand out(uint32_t index) {
  return {true, index};
}
inline std::string operand_text(Operand operand) {
  return (operand.is_output ? "output " : "input ") + std::to_string(operand.index);
}

// A node that a predicate is asked about, of a graph whose structs are whole (GraphCopy).
class NodeQuery {
 public:
  NodeQuery(const pavo_values* caps, const pavo_graph& graph, const pavo_node& node)
      : caps_(caps), graph_(graph), node_(node) {}

  const pavo_values* caps() const { return caps_; }  // may be NULL
  const pavo_graph& graph() const { return graph_; }
  const pavo_node& node() const { return node_; }

  // NULL if it is absent.
  const pavo_tensor* tensor(Operand operand) const {
    return operand.is_output ? output(graph_, node_, operand.index)
                             : input(graph_, node_, operand.index);
  }
  // As verdicts number operands: inputs first.
  int32_t number(Operand operand) const {
    return static_cast<int32_t>(operand.index + (operand.is_output ? node_.input_count : 0));
  }
  template <typename Params>
  const Params& params() const {
    return sdk::params<Params>(node_);
  }

 private:
  const pavo_values* caps_;
  const pavo_graph& graph_;
  const pavo_node& node_;
};

// True if strides say where the elements are.
inline bool has_strides(const pavo_tensor& tensor) {
  return tensor.role == PAVO_ROLE_ACTIVATION || tensor.role == PAVO_ROLE_STEP;
}

inline constexpr int64_t kMostTensorBytes = int64_t{1} << 46;

// Bytes of `tensor` with `row_bytes` for all of its last `row_dims` dimensions; -1: too many.
inline int64_t dense_bytes(const pavo_tensor& tensor, int64_t row_bytes, int32_t row_dims) {
  int64_t bytes = row_bytes;
  for (int32_t i = 0; i + row_dims < tensor.rank; ++i) {
    if (__builtin_mul_overflow(bytes, tensor.shape[i], &bytes)) {
      return -1;
    }
  }
  return bytes;
}

inline int64_t strided_bytes(const pavo_tensor& tensor) {
  int64_t end = pavo_type_block_bytes(tensor.type);
  for (int32_t i = 0; i < tensor.rank; ++i) {
    int64_t step = tensor.shape[i] - 1;
    if (step > 0 &&
        (tensor.stride[i] < 0 || __builtin_mul_overflow(step, tensor.stride[i], &step) ||
         __builtin_add_overflow(end, step, &end))) {
      return -1;
    }
  }
  return end;
}

// Bytes from the first to behind the last element, of a weight those in the file; -1: the sizes
// make no tensor that fits into memory.
inline int64_t extent_bytes(const pavo_tensor& tensor) {
  if (tensor.rank < 1 || tensor.rank > PAVO_MAX_RANK || pavo_type_block_values(tensor.type) <= 0) {
    return -1;
  }
  int64_t elements = 1;  // bounds every product of dimensions
  bool empty = false;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    empty = empty || tensor.shape[i] == 0;
    if (tensor.shape[i] < 0 ||
        __builtin_mul_overflow(elements, std::max<int64_t>(tensor.shape[i], 1), &elements) ||
        elements > kMostTensorBytes) {
      return -1;
    }
  }
  int64_t bytes = -1;
  const int64_t row_bytes = pavo_type_row_bytes(tensor.type, tensor.shape[tensor.rank - 1]);
  if (tensor.role == PAVO_ROLE_KV_POOL) {
    pavo_kv_layout layout{};
    if (tensor.rank == 4 && tensor.shape[2] == PAVO_KV_PAGE_ROWS &&
        pavo_kv_layout_init(tensor.type, tensor.shape[3], &layout) == 0) {
      bytes = dense_bytes(tensor, layout.head_bytes, 2);
    }
  } else if (row_bytes >= 0) {
    bytes = has_strides(tensor) ? strided_bytes(tensor) : dense_bytes(tensor, row_bytes, 1);
  }
  return bytes < 0 || bytes > kMostTensorBytes ? -1 : empty ? 0 : bytes;
}

inline bool check_arity(const NodeQuery& query, const OpFacts& op, pavo_verdict* verdict) {
  const pavo_node& node = query.node();
  if (node.input_count < op.inputs_min || node.input_count > op.inputs_max) {
    return refuse(
        verdict,
        PAVO_REASON_OPERAND,
        -1,
        -1,
        op.inputs_min,
        node.input_count,
        "expected %u to %u inputs, got %u",
        op.inputs_min,
        op.inputs_max,
        node.input_count);
  }
  if (node.output_count < op.outputs_min || node.output_count > op.outputs_max) {
    return refuse(
        verdict,
        PAVO_REASON_OPERAND,
        -1,
        -1,
        op.outputs_min,
        node.output_count,
        "expected %u to %u outputs, got %u",
        op.outputs_min,
        op.outputs_max,
        node.output_count);
  }
  return true;
}

inline bool check_operand(const NodeQuery& query, Operand operand, pavo_verdict* verdict) {
  const pavo_node& node = query.node();
  const uint32_t index =
      operand.is_output ? node.outputs[operand.index] : node.inputs[operand.index];
  const int32_t number = query.number(operand);
  const std::string what = operand_text(operand);
  if (index == PAVO_NO_TENSOR) {  // which inputs are needed, a kernel's rules know
    return !operand.is_output || operand.index >= find_op(node.op)->outputs_min ||
           refuse(
               verdict,
               PAVO_REASON_OPERAND,
               number,
               -1,
               1,
               0,
               "expected %s, got none",
               what.c_str());
  }
  if (index >= query.graph().tensor_count) {
    return refuse(
        verdict,
        PAVO_REASON_OPERAND,
        number,
        -1,
        query.graph().tensor_count,
        index,
        "%s: expected a tensor below %u, got %u",
        what.c_str(),
        query.graph().tensor_count,
        index);
  }
  const pavo_tensor& tensor = *query.graph().tensors[index];
  if (tensor.role < PAVO_ROLE_ACTIVATION || tensor.role > PAVO_ROLE_STATE) {
    return refuse(
        verdict,
        PAVO_REASON_ROLE,
        number,
        -1,
        PAVO_ROLE_STATE,
        tensor.role,
        "%s: unknown role %d",
        what.c_str(),
        tensor.role);
  }
  if (pavo_type_block_values(tensor.type) <= 0) {
    return refuse(
        verdict,
        PAVO_REASON_TYPE,
        number,
        -1,
        PAVO_TYPE_F32,
        tensor.type,
        "%s: unknown type %d",
        what.c_str(),
        tensor.type);
  }
  if (extent_bytes(tensor) < 0) {
    return refuse(
        verdict,
        PAVO_REASON_SHAPE_RANGE,
        number,
        -1,
        0,
        tensor.rank,
        "%s: the sizes make no %s tensor of rank 1 to %d that fits into memory",
        what.c_str(),
        pavo_type_name(tensor.type),
        PAVO_MAX_RANK);
  }
  return true;
}

// Rows of an output that share bytes would depend on the order of writing.
inline bool check_no_overlap(const NodeQuery& query, Operand operand, pavo_verdict* verdict) {
  const pavo_tensor* tensor = query.tensor(operand);
  if (tensor == nullptr || !has_strides(*tensor) || extent_bytes(*tensor) == 0) {
    return true;
  }
  std::vector<int32_t> order(static_cast<size_t>(tensor->rank));
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [tensor](int32_t a, int32_t b) {
    return tensor->stride[a] < tensor->stride[b];
  });
  int64_t end = pavo_type_block_bytes(tensor->type);
  for (const int32_t dimension : order) {
    if (tensor->shape[dimension] <= 1) {
      continue;
    }
    const int64_t stride = tensor->stride[dimension];
    if (stride < end) {
      return refuse(
          verdict,
          PAVO_REASON_STRIDE,
          query.number(operand),
          dimension,
          end,
          stride,
          "%s: elements overlap, expected a stride of at least %" PRId64 ", got %" PRId64,
          operand_text(operand).c_str(),
          end,
          stride);
    }
    end += (tensor->shape[dimension] - 1) * stride;
  }
  return true;
}

// True if the node makes sense, whatever its op computes; else *verdict says why not.
inline bool check_node(const NodeQuery& query, pavo_verdict* verdict) {
  const pavo_node& node = query.node();
  const OpFacts* op = find_op(node.op);
  if (op == nullptr) {
    return refuse(verdict, PAVO_REASON_OP, -1, -1, 0, node.op, "there is no op %d", node.op);
  }
  if (!check_arity(query, *op, verdict)) {
    return false;
  }
  for (uint32_t i = 0; i < node.input_count; ++i) {
    if (!check_operand(query, in(i), verdict)) {
      return false;
    }
  }
  for (uint32_t i = 0; i < node.output_count; ++i) {
    if (!check_operand(query, out(i), verdict) || !check_no_overlap(query, out(i), verdict)) {
      return false;
    }
  }
  return true;
}

}  // namespace pavo::sdk
