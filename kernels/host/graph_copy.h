// A host's graph in the plugin's own memory, every struct grown to the size that this plugin knows.
// Predicates and plans look at copies only, so a short struct or a wild count cannot hurt.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "pavo/plugin.h"

namespace pavo::cuda {

// Parameters of any op.
union AnyParams {
  uint32_t struct_size;
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) pavo_##name##_params name;
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
};

class GraphCopy {
 public:
  GraphCopy() = default;
  GraphCopy(const GraphCopy&) = delete;
  GraphCopy& operator=(const GraphCopy&) = delete;

  // Once. PAVO_ERROR_INVALID_ARGUMENT or _UNSUPPORTED_FIELD if the graph, its bucket, a tensor or a
  // node cannot be read at all. A node of an unknown op or with unreadable parameters gets a fault.
  int32_t init(const pavo_graph* graph, pavo_error* error);

  const pavo_graph& graph() const { return graph_; }
  uint32_t node_count() const { return graph_.node_count; }
  const pavo_node& node(uint32_t index) const { return nodes_[index]; }
  // False with a refusal in *verdict if the node has a fault.
  bool check_params(uint32_t index, pavo_verdict* verdict) const;

 private:
  int32_t copy_tensors(pavo_error* error);
  int32_t copy_node(const pavo_node* source, uint32_t index, pavo_error* error);
  pavo_string keep(const pavo_string& text);

  pavo_graph graph_{};
  pavo_bucket bucket_{};
  std::vector<pavo_tensor> tensors_;
  std::vector<const pavo_tensor*> tensor_pointers_;
  std::vector<pavo_node> nodes_;
  std::vector<const pavo_node*> node_pointers_;
  std::vector<std::vector<uint32_t>> operands_;  // per node, inputs then outputs
  std::vector<AnyParams> params_;                // struct_size: what the host gave
  std::vector<bool> readable_;                   // per node: params_ is complete
  std::deque<std::string> names_;
};

}  // namespace pavo::cuda
