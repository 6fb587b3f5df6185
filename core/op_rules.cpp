#include "core/op_rules.h"

#include <array>

namespace pavo {
namespace {

const auto& op_table() {
  static const auto table = std::to_array<OpInfo>({
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  OpInfo{id, #name, in_min, in_max, out_min, out_max, name##_rules()},
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
  });
  return table;
}

}  // namespace

const OpInfo* find_op(int32_t id) {
  for (const OpInfo& info : op_table()) {
    if (info.id == id) {
      return &info;
    }
  }
  return nullptr;
}

std::span<const OpInfo> all_ops() {
  return op_table();
}

IdealCost ideal_cost(const Graph& graph, const Node& node) {
  std::vector<const Tensor*> inputs;
  for (const TensorId id : node.inputs) {
    inputs.push_back(id == kNoTensor ? nullptr : &graph.tensor(id));
  }
  std::vector<const Tensor*> outputs;
  for (const TensorId id : node.outputs) {
    outputs.push_back(&graph.tensor(id));
  }
  const auto count = static_cast<uint32_t>(outputs.size());
  return find_op(node.op)->rules.cost(OpView{node, inputs, graph.bucket(), count}, outputs);
}

Status operand_error(const OpView& view, size_t index, const std::string& expected) {
  const OpInfo* info = find_op(view.node.op);
  const Tensor* tensor = view.input(index);
  std::string found = "nothing";
  if (tensor != nullptr) {
    found = std::string(pavo_type_name(tensor->type)) + " " + tensor->shape.to_string() + " '" +
            tensor->name + "'";
  }
  return Status(
      Code::kInvalidArgument,
      std::string(info == nullptr ? "?" : info->name) + " '" + view.node.name + "': operand " +
          std::to_string(index) + ": expected " + expected + ", got " + found);
}

int64_t stored_bytes(const Tensor& tensor) {
  const int64_t row = pavo_type_row_bytes(tensor.type, tensor.shape.last());
  return row < 0 ? 0 : row * tensor.shape.rows();
}

}  // namespace pavo
