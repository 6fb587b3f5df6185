// A host's graph in the plugin's own memory, with every struct grown to the size that this plugin
// knows. Predicates and plans look at the copy only, so a short struct or a wild count cannot hurt.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "pavo/plugin.h"

namespace pavo::cpu {

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
  // PAVO_ERROR_INVALID_ARGUMENT or _UNSUPPORTED_FIELD if the graph itself, its bucket or a tensor
  // cannot be read. What is wrong with one node only becomes that node's fault.
  int32_t init(const pavo_graph* graph, pavo_error* error);

  const pavo_graph& graph() const { return graph_; }
  const pavo_node& node(uint32_t index) const { return *graph_.nodes[index]; }
  // A refusal if the node cannot be read (unknown op, parameters of another size), else NULL.
  const pavo_verdict* fault(uint32_t index) const { return faults_[index].get(); }

 private:
  int32_t copy_tensors(const pavo_graph& graph, pavo_error* error);
  int32_t copy_node(const pavo_node* node, uint32_t index, pavo_error* error);
  bool copy_params(const pavo_node& source, uint32_t index);
  pavo_string keep(const pavo_string& text);

  pavo_graph graph_{};
  pavo_bucket bucket_{};
  std::vector<pavo_tensor> tensors_;
  std::vector<const pavo_tensor*> tensor_pointers_;
  std::vector<pavo_node> nodes_;
  std::vector<const pavo_node*> node_pointers_;
  std::vector<std::vector<uint32_t>> operands_;  // per node, inputs then outputs
  std::vector<AnyParams> params_;
  std::vector<std::unique_ptr<pavo_verdict>> faults_;
  std::vector<std::unique_ptr<std::string>> names_;
};

}  // namespace pavo::cpu
