#include "core/graph.h"

#include <algorithm>
#include <limits>

#include "core/op_rules.h"

namespace pavo {
namespace {

// Far above any real tensor, far below where byte arithmetic could overflow.
constexpr int64_t kMaxElements = int64_t{1} << 48;

bool shape_is_sane(const Shape& shape) {
  int64_t product = 1;
  for (int32_t i = 0; i < shape.rank(); ++i) {
    if (shape[i] < 0) {
      return false;
    }
    if (shape[i] > 0 && product > kMaxElements / shape[i]) {
      return false;
    }
    product *= shape[i];
  }
  return shape.rank() > 0;
}

void set_dense_strides(Tensor& tensor) {
  int64_t stride = pavo_type_block_bytes(tensor.type);
  for (int32_t i = tensor.shape.rank() - 1; i >= 0; --i) {
    tensor.stride[static_cast<size_t>(i)] = stride;
    stride *= tensor.shape[i];
  }
}

bool is_dense(const Tensor& tensor) {
  Tensor dense = tensor;
  set_dense_strides(dense);
  for (int32_t i = 0; i < tensor.shape.rank(); ++i) {
    const auto at = static_cast<size_t>(i);
    if (tensor.shape[i] != 1 && tensor.stride[at] != dense.stride[at]) {
      return false;
    }
  }
  return true;
}

Status bad_tensor(const std::string& name, const std::string& why) {
  return Status(Code::kInvalidArgument, "tensor '" + name + "': " + why);
}

}  // namespace

Shape Shape::from(std::span<const int64_t> dims) {
  Shape shape;
  for (const int64_t dim : dims) {
    if (shape.rank_ < PAVO_MAX_RANK) {
      shape.dims_[static_cast<size_t>(shape.rank_)] = dim;
      ++shape.rank_;
    } else {
      return Shape();  // rank 0, which no tensor may have
    }
  }
  return shape;
}

int64_t Shape::elements() const {
  int64_t product = 1;
  for (int32_t i = 0; i < rank_; ++i) {
    product *= dims_[static_cast<size_t>(i)];
  }
  return product;
}

int64_t Shape::rows() const {
  return last() == 0 ? 0 : elements() / last();
}

bool Shape::operator==(const Shape& other) const {
  return rank_ == other.rank_ &&
         std::equal(dims_.begin(), dims_.begin() + rank_, other.dims_.begin());
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int32_t i = 0; i < rank_; ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string((*this)[i]);
  }
  return text + "]";
}

Result<TensorId> Graph::add_tensor(Tensor tensor) {
  if (!shape_is_sane(tensor.shape)) {
    return bad_tensor(
        tensor.name,
        "expected 1 to 4 dimensions of at most 2^48 elements, got " + tensor.shape.to_string());
  }
  if (tensors_.size() >= kNoTensor - 1) {
    return bad_tensor(tensor.name, "too many tensors in the graph");
  }
  tensors_.push_back(std::move(tensor));
  return static_cast<TensorId>(tensors_.size() - 1);
}

Result<TensorId> Graph::add_weight(std::string name, int32_t type, const Shape& shape) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = type;
  tensor.role = PAVO_ROLE_WEIGHT;
  tensor.shape = shape;
  if (pavo_type_row_bytes(type, shape.last()) < 0) {
    return bad_tensor(
        tensor.name,
        "a row of " + std::to_string(shape.last()) + " values is no whole number of " +
            pavo_type_name(type) + " blocks");
  }
  return add_tensor(std::move(tensor));
}

Result<TensorId> Graph::add_kv_pool(std::string name, int32_t type, const Shape& shape) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = type;
  tensor.role = PAVO_ROLE_KV_POOL;
  tensor.shape = shape;
  pavo_kv_layout layout;
  if (shape.rank() != 4 || shape[2] != PAVO_KV_PAGE_ROWS ||
      pavo_kv_layout_init(type, shape[3], &layout) != 0) {
    return bad_tensor(
        tensor.name,
        "expected K/V pages [pages, heads, 64, head dim] of a cache type, got " +
            std::string(pavo_type_name(type)) + " " + shape.to_string());
  }
  return add_tensor(std::move(tensor));
}

Result<TensorId> Graph::add_step(std::string name, const Shape& shape) {
  Tensor tensor;
  tensor.name = std::move(name);
  tensor.type = PAVO_TYPE_I32;
  tensor.role = PAVO_ROLE_STEP;
  tensor.shape = shape;
  set_dense_strides(tensor);
  return add_tensor(std::move(tensor));
}

Result<TensorId> Graph::add_reshape(TensorId base, const Shape& shape) {
  if (base >= tensors_.size()) {
    return Status(Code::kInternal, "reshape of a tensor that is not in the graph");
  }
  const Tensor& source = tensors_[base];
  if (source.role != PAVO_ROLE_ACTIVATION || !is_dense(source) || !shape_is_sane(shape) ||
      shape.elements() != source.shape.elements()) {
    return bad_tensor(
        source.name,
        "expected a contiguous activation of as many elements as " + shape.to_string() + ", got " +
            source.shape.to_string());
  }
  Tensor view = source;
  view.shape = shape;
  view.stride = {};
  set_dense_strides(view);
  view.view_of = storage(base);
  return add_tensor(std::move(view));
}

Result<TensorId> Graph::add_columns(TensorId base, int64_t first, int64_t count) {
  if (base >= tensors_.size()) {
    return Status(Code::kInternal, "slice of a tensor that is not in the graph");
  }
  const Tensor& source = tensors_[base];
  if (source.role != PAVO_ROLE_ACTIVATION || first < 0 || count < 0 ||
      count > source.shape.last() || first > source.shape.last() - count) {
    return bad_tensor(
        source.name,
        "columns " + std::to_string(first) + " and " + std::to_string(count) +
            " more are not inside of " + source.shape.to_string());
  }
  Tensor view = source;
  view.shape[source.shape.rank() - 1] = count;
  view.view_of = storage(base);
  view.view_offset = source.view_offset + first * pavo_type_block_bytes(source.type);
  return add_tensor(std::move(view));
}

Status Graph::check_operands(const Node& node) const {
  const OpInfo* info = find_op(node.op);
  if (info == nullptr) {
    return Status(
        Code::kInternal, "node '" + node.name + "': no op has id " + std::to_string(node.op));
  }
  size_t index = 0;
  for (const TensorId id : node.inputs) {
    const bool required = index < info->inputs_min;
    if ((id != kNoTensor && id >= tensors_.size()) || (id == kNoTensor && required)) {
      // K and V may be one pool: attention's V is the only required-by-position operand that can
      // be absent, and its rule checks that.
      if (id == kNoTensor && node.op == pavo_op_attention && index == 2) {
        ++index;
        continue;
      }
      return Status(
          Code::kInternal,
          std::string(info->name) + " '" + node.name + "': operand " + std::to_string(index) +
              " is missing");
    }
    ++index;
  }
  if (index < info->inputs_min || index > info->inputs_max) {
    return Status(
        Code::kInternal,
        std::string(info->name) + " '" + node.name + "': expected " +
            std::to_string(info->inputs_min) + " to " + std::to_string(info->inputs_max) +
            " operands, got " + std::to_string(index));
  }
  return Status();
}

Result<std::vector<TensorId>> Graph::add_node(Node node, uint32_t output_count) {
  PAVO_RETURN_IF_ERROR(check_operands(node));
  const OpInfo* info = find_op(node.op);
  if (output_count < info->outputs_min || output_count > info->outputs_max) {
    return Status(
        Code::kInternal,
        std::string(info->name) + " '" + node.name + "': " + std::to_string(output_count) +
            " outputs asked for");
  }
  std::vector<const Tensor*> inputs;
  for (const TensorId id : node.inputs) {
    inputs.push_back(id == kNoTensor ? nullptr : &tensors_[id]);
  }
  PAVO_ASSIGN_OR_RETURN(
      const std::vector<OutputRule> outputs,
      info->rules.infer(OpView{node, inputs, bucket_, output_count}));
  for (const OutputRule& rule : outputs) {
    if (rule.in_place_input >= 0) {
      node.outputs.push_back(node.inputs[static_cast<size_t>(rule.in_place_input)]);
      continue;
    }
    Tensor tensor;
    tensor.name = outputs.size() == 1 || node.outputs.empty() ? node.name : node.name + ".sum";
    tensor.shape = rule.shape;
    set_dense_strides(tensor);
    PAVO_ASSIGN_OR_RETURN(const TensorId id, add_tensor(std::move(tensor)));
    node.outputs.push_back(id);
  }
  note_weight_uses(node);
  std::vector<TensorId> ids = node.outputs;
  nodes_.push_back(std::move(node));
  return ids;
}

// Adds the node, or its parts, of which the last ones write what the node wrote.
Status Graph::put(Node node, Expand parts) {
  if (parts == nullptr) {
    nodes_.push_back(std::move(node));
    return Status();
  }
  const size_t first = nodes_.size();
  PAVO_ASSIGN_OR_RETURN(const std::vector<TensorId> made, parts(*this, node));
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    const TensorId id = i < made.size() ? made[i] : kNoTensor;
    if (id == kNoTensor || !(tensors_[id].shape == tensors_[node.outputs[i]].shape)) {
      return Status(
          Code::kInternal,
          "node '" + node.name + "': its parts do not make output " + std::to_string(i));
    }
    // Readers and views know the output by its old id.
    for (size_t n = first; n < nodes_.size(); ++n) {
      std::replace(nodes_[n].inputs.begin(), nodes_[n].inputs.end(), id, node.outputs[i]);
      std::replace(nodes_[n].outputs.begin(), nodes_[n].outputs.end(), id, node.outputs[i]);
    }
  }
  return Status();
}

void Graph::note_weight_uses(const Node& node) {
  const OpInfo* info = find_op(node.op);
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const TensorId id = node.inputs[i];
    if (id != kNoTensor && tensors_[id].role == PAVO_ROLE_WEIGHT) {
      tensors_[id].uses |= info->rules.weight_use(i);
    }
  }
}

int64_t Graph::span_bytes(TensorId id) const {
  const Tensor& tensor = tensors_[id];
  if (tensor.shape.elements() == 0) {
    return 0;
  }
  if (tensor.role == PAVO_ROLE_KV_POOL) {
    pavo_kv_layout layout;
    if (pavo_kv_layout_init(tensor.type, tensor.shape[3], &layout) != 0) {
      return 0;
    }
    return tensor.shape[0] * tensor.shape[1] * layout.head_bytes;
  }
  if (tensor.role == PAVO_ROLE_WEIGHT) {
    return stored_bytes(tensor);
  }
  int64_t last = pavo_type_block_bytes(tensor.type);
  for (int32_t i = 0; i < tensor.shape.rank(); ++i) {
    last += (tensor.shape[i] - 1) * tensor.stride[static_cast<size_t>(i)];
  }
  return last;
}

}  // namespace pavo
