#include "kernels/host/graph_copy.h"

#include <cstring>

#include "pavo/plugin_helpers.h"

#include "kernels/host/error.h"

namespace pavo::cuda {
namespace {

// More than any op of the ABI takes; a larger count is a fault of the host.
constexpr uint32_t kMaxOperands = 64;
constexpr uint32_t kMaxCount = 1u << 24;  // of tensors and of nodes

// Size of an op's parameter struct; 0: unknown op.
size_t params_bytes(int32_t op) {
  switch (op) {
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  case id:                                                          \
    return sizeof(pavo_##name##_params);
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
    default:
      return 0;
  }
}

bool zero_tail(const void* memory, size_t from, size_t to) {
  const auto* bytes = static_cast<const unsigned char*>(memory);
  for (size_t i = from; i < to; ++i) {
    if (bytes[i] != 0) {
      return false;
    }
  }
  return true;
}

}  // namespace

pavo_string GraphCopy::keep(const pavo_string& text) {
  if (text.data == nullptr || text.size == 0) {
    return {nullptr, 0};
  }
  return sdk::string(names_.emplace_back(text.data, text.size));
}

int32_t GraphCopy::copy_tensors(pavo_error* error) {
  tensors_.resize(graph_.tensor_count);
  tensor_pointers_.reserve(graph_.tensor_count);
  for (uint32_t i = 0; i < graph_.tensor_count; ++i) {
    PAVO_TRY(sdk::read_struct(
        graph_.tensors[i], &tensors_[i], sizeof(pavo_tensor), "pavo_tensor", error));
    tensors_[i].name = keep(tensors_[i].name);
    tensor_pointers_.push_back(&tensors_[i]);
  }
  graph_.tensors = tensor_pointers_.data();
  return PAVO_OK;
}

int32_t GraphCopy::copy_node(const pavo_node* source, uint32_t index, pavo_error* error) {
  pavo_node& node = nodes_[index];
  PAVO_TRY(sdk::read_struct(source, &node, sizeof(pavo_node), "pavo_node", error));
  if (node.input_count > kMaxOperands || node.output_count > kMaxOperands ||
      (node.input_count != 0 && node.inputs == nullptr) ||
      (node.output_count != 0 && node.outputs == nullptr)) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "node %u: expected arrays of at most %u operands, got %u inputs, %u outputs",
        index,
        kMaxOperands,
        node.input_count,
        node.output_count);
  }
  std::vector<uint32_t>& operands = operands_[index];
  operands.assign(node.inputs, node.inputs + node.input_count);
  operands.insert(operands.end(), node.outputs, node.outputs + node.output_count);
  node.inputs = operands.data();
  node.outputs = operands.data() + node.input_count;
  node.name = keep(node.name);

  AnyParams& params = params_[index];
  const size_t known = params_bytes(node.op);
  if (node.params != nullptr) {
    std::memcpy(&params.struct_size, node.params, sizeof params.struct_size);
    const uint32_t size = params.struct_size;
    if (known != 0 && size >= sizeof size && zero_tail(node.params, known, size)) {
      std::memcpy(static_cast<void*>(&params), node.params, size < known ? size : known);
      readable_[index] = true;
    }
  }
  node.params = &params;
  return PAVO_OK;
}

bool GraphCopy::check_params(uint32_t index, pavo_verdict* verdict) const {
  const int32_t op = nodes_[index].op;
  const size_t known = params_bytes(op);
  if (known == 0) {
    return sdk::refuse(verdict, PAVO_REASON_OP, -1, -1, 0, op, "op %d is not known here", op);
  }
  return readable_[index] || sdk::refuse(
                                 verdict,
                                 PAVO_REASON_PARAM,
                                 -1,
                                 0,
                                 static_cast<int64_t>(known),
                                 params_[index].struct_size,
                                 "expected a parameter struct of at most %zu known bytes, got %u",
                                 known,
                                 params_[index].struct_size);
}

int32_t GraphCopy::init(const pavo_graph* graph, pavo_error* error) {
  PAVO_TRY(sdk::read_struct(graph, &graph_, sizeof(pavo_graph), "pavo_graph", error));
  const bool too_many = graph_.tensor_count > kMaxCount || graph_.node_count > kMaxCount;
  if (too_many || (graph_.tensor_count != 0 && graph_.tensors == nullptr) ||
      (graph_.node_count != 0 && graph_.nodes == nullptr)) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "pavo_graph: expected arrays of at most %u tensors and nodes, got %u tensors, %u nodes%s",
        kMaxCount,
        graph_.tensor_count,
        graph_.node_count,
        too_many ? "" : ", an array is NULL");
  }
  PAVO_TRY(sdk::read_struct(graph_.bucket, &bucket_, sizeof(pavo_bucket), "pavo_bucket", error));
  graph_.bucket = &bucket_;
  PAVO_TRY(copy_tensors(error));
  nodes_.resize(graph_.node_count);
  operands_.resize(graph_.node_count);
  params_.resize(graph_.node_count);
  readable_.resize(graph_.node_count);
  for (uint32_t i = 0; i < graph_.node_count; ++i) {
    PAVO_TRY(copy_node(graph_.nodes[i], i, error));
    node_pointers_.push_back(&nodes_[i]);
  }
  graph_.nodes = node_pointers_.data();
  return PAVO_OK;
}

}  // namespace pavo::cuda
