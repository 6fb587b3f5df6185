#include "core/simpler_ops.h"

namespace pavo {
namespace {

using Tensors = std::vector<TensorId>;

// Positions of norm's and matmul's inputs.
constexpr size_t kX = 0, kWeight = 1, kBias = 2, kResidual = 3;

TensorId input(const Node& node, size_t index) {
  return index < node.inputs.size() ? node.inputs[index] : kNoTensor;
}

Result<TensorId> binary(Graph& graph, const Node& node, int32_t kind, TensorId a, TensorId b) {
  pavo_binary_params params = {};
  params.kind = kind;
  PAVO_ASSIGN_OR_RETURN(const Tensors out, graph.add(pavo_op_binary, node.name, {a, b}, params));
  return out[0];
}

// The node's norm of other inputs; absent ones at the end are left out.
Result<Tensors> norm(
    Graph& graph,
    const Node& node,
    Tensors inputs,
    uint32_t outputs,
    const pavo_norm_params& params) {
  while (inputs.back() == kNoTensor) {
    inputs.pop_back();
  }
  return graph.add(pavo_op_norm, node.name, std::move(inputs), params, outputs);
}

Result<Tensors> split_residual(Graph& graph, const Node& node) {
  PAVO_ASSIGN_OR_RETURN(
      const TensorId sum,
      binary(graph, node, PAVO_BINARY_ADD, input(node, kX), input(node, kResidual)));
  PAVO_ASSIGN_OR_RETURN(
      Tensors out,
      norm(
          graph,
          node,
          {sum, input(node, kWeight), input(node, kBias)},
          1,
          node_params<pavo_norm_params>(node)));
  out.push_back(sum);
  return out;
}

Result<Tensors> split_bias(Graph& graph, const Node& node) {
  PAVO_ASSIGN_OR_RETURN(
      Tensors out,
      norm(
          graph,
          node,
          {input(node, kX), input(node, kWeight)},
          static_cast<uint32_t>(node.outputs.size()),
          node_params<pavo_norm_params>(node)));
  PAVO_ASSIGN_OR_RETURN(out[0], binary(graph, node, PAVO_BINARY_ADD, out[0], input(node, kBias)));
  return out;
}

// y * (w + 1) = y * w + y.
Result<Tensors> split_weight(Graph& graph, const Node& node) {
  pavo_norm_params params = node_params<pavo_norm_params>(node);
  const bool offset = params.weight_offset != 0;
  params.weight_offset = 0;
  PAVO_ASSIGN_OR_RETURN(
      Tensors out,
      norm(graph, node, {input(node, kX)}, static_cast<uint32_t>(node.outputs.size()), params));
  const TensorId plain = out[0];
  PAVO_ASSIGN_OR_RETURN(out[0], binary(graph, node, PAVO_BINARY_MUL, plain, input(node, kWeight)));
  if (offset) {
    PAVO_ASSIGN_OR_RETURN(out[0], binary(graph, node, PAVO_BINARY_ADD, out[0], plain));
  }
  return out;
}

Result<Tensors> split_matmul_bias(Graph& graph, const Node& node) {
  PAVO_ASSIGN_OR_RETURN(
      const Tensors product,
      graph.add(
          pavo_op_matmul,
          node.name,
          {input(node, kX), input(node, kWeight)},
          node_params<pavo_matmul_params>(node)));
  PAVO_ASSIGN_OR_RETURN(
      const TensorId out, binary(graph, node, PAVO_BINARY_ADD, product[0], input(node, kBias)));
  return Tensors{out};
}

Result<Tensors> split_glu(Graph& graph, const Node& node) {
  const TensorId both = input(node, 0);
  const int64_t half = graph.tensor(both).shape.last() / 2;
  PAVO_ASSIGN_OR_RETURN(const TensorId gate, graph.add_columns(both, 0, half));
  PAVO_ASSIGN_OR_RETURN(const TensorId up, graph.add_columns(both, half, half));
  return graph.add(pavo_op_glu, node.name, {gate, up}, node_params<pavo_glu_params>(node));
}

Graph::Expand simpler_norm(const Node& node) {
  const float offset = node_params<pavo_norm_params>(node).weight_offset;
  if (input(node, kResidual) != kNoTensor) {
    return split_residual;
  }
  if (input(node, kBias) != kNoTensor) {
    return split_bias;
  }
  const bool simple = offset == 0.0F || offset == 1.0F;
  return input(node, kWeight) != kNoTensor && simple ? split_weight : nullptr;
}

}  // namespace

Graph::Expand simpler_ops(const Graph& graph, const Node& node) {
  switch (node.op) {
    case pavo_op_norm:
      return simpler_norm(node);
    case pavo_op_matmul:
      return input(node, kBias) != kNoTensor ? split_matmul_bias : nullptr;
    case pavo_op_glu:
      return input(node, 1) == kNoTensor && graph.tensor(input(node, 0)).shape.last() > 0
                 ? split_glu
                 : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace pavo
