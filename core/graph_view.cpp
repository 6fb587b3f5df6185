#include "core/graph_view.h"

#include <numeric>

namespace pavo {

pavo_tensor to_pavo_tensor(const Tensor& tensor) {
  pavo_tensor out = {};
  out.struct_size = sizeof out;
  out.type = tensor.type;
  out.role = tensor.role;
  out.rank = tensor.shape.rank();
  out.uses = tensor.uses;
  for (int32_t i = 0; i < tensor.shape.rank(); ++i) {
    out.shape[i] = tensor.shape[i];
    out.stride[i] = tensor.stride[static_cast<size_t>(i)];
  }
  out.name = pavo_string{tensor.name.data(), tensor.name.size()};
  return out;
}

GraphView::GraphView(const Graph& graph, std::span<const uint32_t> nodes) : graph_(graph) {
  build(nodes);
}

GraphView::GraphView(const Graph& graph) : graph_(graph) {
  std::vector<uint32_t> all(graph.nodes().size());
  std::iota(all.begin(), all.end(), 0u);
  build(all);
}

uint32_t GraphView::local_index(TensorId id) {
  if (id == kNoTensor) {
    return PAVO_NO_TENSOR;
  }
  if (local_of_[id] == kNoTensor) {
    local_of_[id] = static_cast<uint32_t>(tensor_ids_.size());
    tensor_ids_.push_back(id);
  }
  return local_of_[id];
}

void GraphView::build(std::span<const uint32_t> nodes) {
  local_of_.assign(graph_.tensors().size(), kNoTensor);
  operands_.reserve(2 * nodes.size());
  nodes_.reserve(nodes.size());
  for (const uint32_t index : nodes) {
    const Node& node = graph_.nodes()[index];
    for (const std::vector<TensorId>* list : {&node.inputs, &node.outputs}) {
      std::vector<uint32_t>& local = operands_.emplace_back();
      for (const TensorId id : *list) {
        local.push_back(local_index(id));
      }
    }
    pavo_node& out = nodes_.emplace_back();
    out.struct_size = sizeof out;
    out.op = node.op;
    out.id = index;
    const std::vector<uint32_t>& inputs = operands_[operands_.size() - 2];
    const std::vector<uint32_t>& outputs = operands_[operands_.size() - 1];
    out.input_count = static_cast<uint32_t>(inputs.size());
    out.output_count = static_cast<uint32_t>(outputs.size());
    out.inputs = inputs.data();
    out.outputs = outputs.data();
    out.params = node.params.data();
    out.name = pavo_string{node.name.data(), node.name.size()};
  }
  tensors_.reserve(tensor_ids_.size());
  for (const TensorId id : tensor_ids_) {
    tensors_.push_back(to_pavo_tensor(graph_.tensor(id)));
    tensor_pointers_.push_back(&tensors_.back());
  }
  for (const pavo_node& node : nodes_) {
    node_pointers_.push_back(&node);
  }
  bucket_.struct_size = sizeof bucket_;
  bucket_.tokens = graph_.bucket().tokens;
  bucket_.sequences = graph_.bucket().sequences;
  bucket_.kv_rows = graph_.bucket().kv_rows;
  view_.struct_size = sizeof view_;
  view_.tensor_count = static_cast<uint32_t>(tensor_pointers_.size());
  view_.tensors = tensor_pointers_.data();
  view_.node_count = static_cast<uint32_t>(node_pointers_.size());
  view_.nodes = node_pointers_.data();
  view_.bucket = &bucket_;
}

}  // namespace pavo
