// A graph, or some of its nodes, in the form that plugins read (pavo_graph).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph.h"

namespace pavo {

// Owns the C structs. Points into `graph`, which must outlive it and stay unchanged. Only tensors
// that the nodes use are listed, in order of first use.
class GraphView {
 public:
  GraphView(const Graph& graph, std::span<const uint32_t> nodes);
  explicit GraphView(const Graph& graph);
  GraphView(const GraphView&) = delete;
  GraphView& operator=(const GraphView&) = delete;

  const pavo_graph& get() const { return view_; }
  // Tensor of the graph behind each of the view's tensors.
  const std::vector<TensorId>& tensors() const { return tensor_ids_; }

 private:
  void build(std::span<const uint32_t> nodes);
  uint32_t local_index(TensorId id);

  const Graph& graph_;
  std::vector<TensorId> tensor_ids_;
  std::vector<uint32_t> local_of_;  // by TensorId
  std::vector<pavo_tensor> tensors_;
  std::vector<const pavo_tensor*> tensor_pointers_;
  std::vector<pavo_node> nodes_;
  std::vector<const pavo_node*> node_pointers_;
  std::vector<std::vector<uint32_t>> operands_;
  pavo_bucket bucket_ = {};
  pavo_graph view_ = {};
};

// One tensor in the plugin's form; the name points into `tensor`.
pavo_tensor to_pavo_tensor(const Tensor& tensor);

}  // namespace pavo
