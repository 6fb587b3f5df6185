#include "plugins/cpu/graph_copy.h"

#include <cstring>

#include "pavo/plugin_helpers.h"

#include "plugins/cpu/op_info.h"

namespace pavo::cpu {
namespace {

// More than any op of the ABI takes; a larger count is a fault of the host.
constexpr uint32_t kMaxOperands = 64;

std::unique_ptr<pavo_verdict> new_fault() {
  auto verdict = std::make_unique<pavo_verdict>();
  verdict->struct_size = sizeof(pavo_verdict);
  return verdict;
}

// Bytes behind what this plugin knows that are not zero.
bool has_unknown_tail(const void* memory, uint32_t size, size_t known) {
  const auto* bytes = static_cast<const unsigned char*>(memory);
  for (size_t i = known; i < size; ++i) {
    if (bytes[i] != 0) {
      return true;
    }
  }
  return false;
}

}  // namespace

pavo_string GraphCopy::keep(const pavo_string& text) {
  if (text.data == nullptr || text.size == 0) {
    return {nullptr, 0};
  }
  names_.push_back(std::make_unique<std::string>(text.data, text.size));
  return sdk::string(*names_.back());
}

int32_t GraphCopy::copy_tensors(const pavo_graph& graph, pavo_error* error) {
  tensors_.resize(graph.tensor_count);
  for (uint32_t i = 0; i < graph.tensor_count; ++i) {
    const int32_t code =
        sdk::read_struct(graph.tensors[i], &tensors_[i], sizeof(pavo_tensor), "pavo_tensor", error);
    if (code != PAVO_OK) {
      return code;
    }
    tensors_[i].name = keep(tensors_[i].name);
    tensor_pointers_.push_back(&tensors_[i]);
  }
  return PAVO_OK;
}

bool GraphCopy::copy_params(const pavo_node& source, uint32_t index) {
  faults_[index] = new_fault();
  pavo_verdict* fault = faults_[index].get();
  const OpInfo* op = find_op(source.op);
  if (op == nullptr) {
    return sdk::refuse(
        fault, PAVO_REASON_OP, -1, -1, 0, source.op, "op %d is not known here", source.op);
  }
  if (source.params == nullptr) {
    return sdk::refuse(
        fault,
        PAVO_REASON_PARAM,
        -1,
        -1,
        static_cast<int64_t>(op->params_bytes),
        0,
        "the parameter struct is missing");
  }
  uint32_t size = 0;
  std::memcpy(&size, source.params, sizeof size);
  if (size < op->params_bytes || has_unknown_tail(source.params, size, op->params_bytes)) {
    return sdk::refuse(
        fault,
        PAVO_REASON_PARAM,
        -1,
        0,
        static_cast<int64_t>(op->params_bytes),
        size,
        "expected a parameter struct of %zu bytes, got %u",
        op->params_bytes,
        size);
  }
  std::memcpy(static_cast<void*>(&params_[index]), source.params, op->params_bytes);
  params_[index].struct_size = static_cast<uint32_t>(op->params_bytes);
  faults_[index].reset();
  return true;
}

int32_t GraphCopy::copy_node(const pavo_node* source, uint32_t index, pavo_error* error) {
  pavo_node& node = nodes_[index];
  const int32_t code = sdk::read_struct(source, &node, sizeof(pavo_node), "pavo_node", error);
  if (code != PAVO_OK) {
    return code;
  }
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
  copy_params(node, index);
  node.params = &params_[index];
  return PAVO_OK;
}

int32_t GraphCopy::init(const pavo_graph* graph, pavo_error* error) {
  int32_t code = sdk::read_struct(graph, &graph_, sizeof(pavo_graph), "pavo_graph", error);
  if (code != PAVO_OK) {
    return code;
  }
  if ((graph_.tensor_count != 0 && graph_.tensors == nullptr) ||
      (graph_.node_count != 0 && graph_.nodes == nullptr)) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "pavo_graph: expected arrays of %u tensors and %u nodes, got NULL",
        graph_.tensor_count,
        graph_.node_count);
  }
  code = sdk::read_struct(graph_.bucket, &bucket_, sizeof(pavo_bucket), "pavo_bucket", error);
  if (code != PAVO_OK) {
    return code;
  }
  code = copy_tensors(graph_, error);
  nodes_.resize(graph_.node_count);
  operands_.resize(graph_.node_count);
  params_.resize(graph_.node_count);
  faults_.resize(graph_.node_count);
  for (uint32_t i = 0; i < graph_.node_count && code == PAVO_OK; ++i) {
    code = copy_node(graph_.nodes[i], i, error);
    node_pointers_.push_back(&nodes_[i]);
  }
  graph_.tensors = tensor_pointers_.data();
  graph_.nodes = node_pointers_.data();
  graph_.bucket = &bucket_;
  return code;
}

}  // namespace pavo::cpu
