// Small graphs of the ABI for tests, with their own memory.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "pavo/plugin.h"
#include "pavo/plugin_helpers.h"

namespace pavo::cuda {

class GraphBuilder {
 public:
  using Shape = std::vector<int64_t>;

  uint32_t tensor(int32_t type, int32_t role, const Shape& shape, uint32_t uses = 0) {
    pavo_tensor& tensor = tensors_.emplace_back();
    tensor.struct_size = sizeof tensor;
    tensor.type = type;
    tensor.role = role;
    tensor.uses = uses;
    tensor.rank = static_cast<int32_t>(shape.size());
    int64_t stride = 4;
    for (size_t i = shape.size(); i-- > 0;) {
      tensor.shape[i] = shape[i];
      if (role != PAVO_ROLE_WEIGHT && role != PAVO_ROLE_KV_POOL) {
        tensor.stride[i] = stride;
      }
      stride *= shape[i];
    }
    names_.push_back("t" + std::to_string(tensors_.size() - 1));
    tensor.name = sdk::string(names_.back());
    return static_cast<uint32_t>(tensors_.size() - 1);
  }
  uint32_t activation(const Shape& shape) {
    return tensor(PAVO_TYPE_F32, PAVO_ROLE_ACTIVATION, shape);
  }
  uint32_t weight(int32_t type, const Shape& shape, uint32_t uses = PAVO_USE_MATMUL) {
    return tensor(type, PAVO_ROLE_WEIGHT, shape, uses);
  }
  uint32_t dense(const Shape& shape) { return weight(PAVO_TYPE_F32, shape, PAVO_USE_DENSE); }
  uint32_t step(const Shape& shape) { return tensor(PAVO_TYPE_I32, PAVO_ROLE_STEP, shape); }
  uint32_t kv_pool(int32_t type, int64_t pages, int64_t heads, int64_t dim) {
    return tensor(type, PAVO_ROLE_KV_POOL, {pages, heads, PAVO_KV_PAGE_ROWS, dim});
  }

  template <typename Params>
  void node(
      int32_t op, Params params, std::vector<uint32_t> inputs, std::vector<uint32_t> outputs) {
    params.struct_size = sizeof(Params);
    auto held = std::make_shared<Params>(params);
    params_.push_back(held);
    operands_.push_back(std::move(inputs));
    const std::vector<uint32_t>& in = operands_.back();
    operands_.push_back(std::move(outputs));
    const std::vector<uint32_t>& out = operands_.back();
    pavo_node& node = nodes_.emplace_back();
    node.struct_size = sizeof node;
    node.op = op;
    node.id = nodes_.size() - 1;
    node.input_count = static_cast<uint32_t>(in.size());
    node.output_count = static_cast<uint32_t>(out.size());
    node.inputs = in.data();
    node.outputs = out.data();
    node.params = held.get();
  }

  pavo_tensor& at(uint32_t index) { return tensors_[index]; }
  pavo_node& node_at(uint32_t index) { return nodes_[index]; }
  uint32_t node_count() const { return static_cast<uint32_t>(nodes_.size()); }
  uint32_t tensor_count() const { return static_cast<uint32_t>(tensors_.size()); }
  pavo_bucket& bucket() { return bucket_; }

  // Valid until the builder changes.
  const pavo_graph* graph() {
    tensor_list_.clear();
    for (const pavo_tensor& tensor : tensors_) {
      tensor_list_.push_back(&tensor);
    }
    node_list_.clear();
    for (const pavo_node& node : nodes_) {
      node_list_.push_back(&node);
    }
    graph_ = {
        sizeof graph_,
        tensor_count(),
        tensor_list_.data(),
        node_count(),
        0,
        node_list_.data(),
        &bucket_};
    return &graph_;
  }

 private:
  std::deque<pavo_tensor> tensors_;
  std::deque<pavo_node> nodes_;
  std::deque<std::vector<uint32_t>> operands_;
  std::vector<std::shared_ptr<void>> params_;
  std::deque<std::string> names_;
  std::vector<const pavo_tensor*> tensor_list_;
  std::vector<const pavo_node*> node_list_;
  pavo_bucket bucket_ = {sizeof(pavo_bucket), 1, 1, 0, 64};
  pavo_graph graph_ = {};
};

inline pavo_error make_error() {
  pavo_error error = {};
  error.struct_size = sizeof error;
  return error;
}

inline std::string text_of(const pavo_error& error) {
  return {error.message, error.message_size};
}

}  // namespace pavo::cuda
