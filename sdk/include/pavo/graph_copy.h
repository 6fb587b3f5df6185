// C++17: the ops by number and name, and a graph as a plugin may keep it: read once with the rules
// for growing structs, whole ever after.
#pragma once

#include <algorithm>
#include <cstring>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "pavo/plugin_helpers.h"

namespace pavo::sdk {

struct OpFacts {
  int32_t id;
  const char* name;
  uint32_t inputs_min;
  uint32_t inputs_max;
  uint32_t outputs_min;
  uint32_t outputs_max;
  size_t params_size;
};

inline constexpr OpFacts kOps[] = {
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  {id, #name, in_min, in_max, out_min, out_max, sizeof(pavo_##name##_params)},
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
};

// NULL if there is none.
inline const OpFacts* find_op(int32_t id) {
  const auto* found = std::find_if(
      std::begin(kOps), std::end(kOps), [id](const OpFacts& op) { return op.id == id; });
  return found == std::end(kOps) ? nullptr : found;
}
inline const OpFacts* find_op(std::string_view name) {
  const auto* found = std::find_if(
      std::begin(kOps), std::end(kOps), [name](const OpFacts& op) { return name == op.name; });
  return found == std::end(kOps) ? nullptr : found;
}
inline const char* op_name(int32_t id) {
  const OpFacts* op = find_op(id);
  return op == nullptr ? "unknown" : op->name;
}

// read_struct() that raises.
template <typename T>
void read_or_raise(const T* in, T* out, const char* what) {
  pavo_error error{};
  error.struct_size = sizeof error;
  if (read_struct(in, out, sizeof(T), what, &error) != PAVO_OK) {
    raise(error.code, "%s", error.message);
  }
}

// Owns everything that it points to. A node or tensor with fields that this side does not know is
// no error of the graph: the node gets a fault and is to be refused.
class GraphCopy {
 public:
  // Raises PAVO_ERROR_INVALID_ARGUMENT or PAVO_ERROR_UNSUPPORTED_FIELD.
  explicit GraphCopy(const pavo_graph* given) {
    read_or_raise(given, &graph_, "pavo_graph");
    read_or_raise(graph_.bucket, &bucket_, "pavo_bucket");
    if ((graph_.tensor_count != 0 && graph_.tensors == nullptr) ||
        (graph_.node_count != 0 && graph_.nodes == nullptr)) {
      raise(
          PAVO_ERROR_INVALID_ARGUMENT,
          "pavo_graph: an array is NULL, expected %u tensors and %u"
          " nodes",
          graph_.tensor_count,
          graph_.node_count);
    }
    for (uint32_t i = 0; i < graph_.tensor_count; ++i) {
      add_tensor(graph_.tensors[i]);
    }
    for (uint32_t i = 0; i < graph_.node_count; ++i) {
      add_node(graph_.nodes[i]);
    }
    graph_.bucket = &bucket_;
    graph_.tensors = tensor_pointers_.data();
    graph_.nodes = node_pointers_.data();
  }
  GraphCopy(const GraphCopy&) = delete;
  GraphCopy& operator=(const GraphCopy&) = delete;

  const pavo_graph& graph() const { return graph_; }
  // Why a node cannot be understood; empty if it can.
  const std::string& fault(uint32_t node) const { return nodes_[node].fault; }

 private:
  struct Tensor {
    pavo_tensor desc{};
    std::string name;
    bool is_known = true;
  };
  struct Node {
    pavo_node desc{};
    std::string name;
    std::string fault;
    std::vector<uint32_t> operands;
    std::vector<uint64_t> params;  // aligned for every field
  };

  static constexpr uint32_t kMostOperands = 1024;

  // False: there are bytes behind what this side knows that are not zero.
  template <typename T>
  static bool read(const T* in, T* out, const char* what) {
    pavo_error error{};
    error.struct_size = sizeof error;
    const int32_t code = read_struct(in, out, sizeof(T), what, &error);
    if (code == PAVO_ERROR_UNSUPPORTED_FIELD) {
      std::memcpy(static_cast<void*>(out), in, sizeof(T));
      out->struct_size = sizeof(T);
    } else if (code != PAVO_OK) {
      raise(code, "%s", error.message);
    }
    return code == PAVO_OK;
  }

  void add_tensor(const pavo_tensor* given) {
    Tensor& tensor = tensors_.emplace_back();
    tensor.is_known = read(given, &tensor.desc, "pavo_tensor");
    tensor.name = view(tensor.desc.name);
    tensor.desc.name = string(tensor.name);
    tensor_pointers_.push_back(&tensor.desc);
  }

  void add_node(const pavo_node* given) {
    Node& node = nodes_.emplace_back();
    pavo_node& desc = node.desc;
    if (!read(given, &desc, "pavo_node")) {
      node.fault = "the node has fields that this plugin does not know";
    }
    node.name = view(desc.name);
    desc.name = string(node.name);
    if (desc.input_count > kMostOperands || desc.output_count > kMostOperands ||
        (desc.input_count != 0 && desc.inputs == nullptr) ||
        (desc.output_count != 0 && desc.outputs == nullptr)) {
      raise(
          PAVO_ERROR_INVALID_ARGUMENT,
          "node %s: impossible lists of %u inputs and %u outputs",
          node.name.c_str(),
          desc.input_count,
          desc.output_count);
    }
    node.operands.assign(desc.inputs, desc.inputs + desc.input_count);
    node.operands.insert(node.operands.end(), desc.outputs, desc.outputs + desc.output_count);
    desc.inputs = node.operands.data();
    desc.outputs = node.operands.data() + desc.input_count;
    for (const uint32_t index : node.operands) {
      if (index < tensors_.size() && !tensors_[index].is_known) {
        node.fault =
            "tensor " + std::to_string(index) + " has fields that this plugin does not know";
      }
    }
    add_params(&node);
    node_pointers_.push_back(&desc);
  }

  // Fields that the host does not know are zero.
  static void add_params(Node* node) {
    const OpFacts* op = find_op(node->desc.op);
    if (op == nullptr) {
      node->desc.params = nullptr;
      return;
    }
    uint32_t size = 0;
    if (node->desc.params != nullptr) {
      std::memcpy(&size, node->desc.params, sizeof size);
    }
    if (size < sizeof size) {
      raise(
          PAVO_ERROR_INVALID_ARGUMENT,
          "node %s: expected parameters of op %s, got %u bytes",
          node->name.c_str(),
          op->name,
          size);
    }
    const auto* bytes = static_cast<const unsigned char*>(node->desc.params);
    const size_t known = std::min<size_t>(size, op->params_size);
    if (std::any_of(bytes + known, bytes + size, [](unsigned char byte) { return byte != 0; })) {
      node->fault = "the parameters have fields that this plugin does not know";
    }
    node->params.resize((op->params_size + 7) / 8);
    std::memcpy(node->params.data(), bytes, known);
    const auto whole = static_cast<uint32_t>(op->params_size);
    std::memcpy(node->params.data(), &whole, sizeof whole);
    node->desc.params = node->params.data();
  }

  pavo_graph graph_{};
  pavo_bucket bucket_{};
  std::deque<Tensor> tensors_;  // never move
  std::deque<Node> nodes_;
  std::vector<const pavo_tensor*> tensor_pointers_;
  std::vector<const pavo_node*> node_pointers_;
};

}  // namespace pavo::sdk
