// The graph: tensors and semantic nodes in execution order, built for one bucket of sizes.
//
// A graph holds no memory and knows no device. Shapes follow from the rules in core/ops/<op>.cpp.
// Views (reshapes, slices of the last dimension) are tensors that share the storage of another.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "pavo/plugin.h"

#include "core/status.h"

namespace pavo {

using TensorId = uint32_t;
inline constexpr TensorId kNoTensor = PAVO_NO_TENSOR;

// Up to PAVO_MAX_RANK dimensions, outermost first.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<int64_t> dims) : Shape(from({dims.begin(), dims.size()})) {}
  // More than PAVO_MAX_RANK dimensions give the empty shape, which a graph refuses.
  static Shape from(std::span<const int64_t> dims);

  int32_t rank() const { return rank_; }
  int64_t operator[](int32_t index) const { return dims_[static_cast<size_t>(index)]; }
  int64_t& operator[](int32_t index) { return dims_[static_cast<size_t>(index)]; }
  int64_t last() const { return rank_ == 0 ? 1 : dims_[static_cast<size_t>(rank_ - 1)]; }
  // Product of all dimensions; the graph refuses shapes whose product overflows.
  int64_t elements() const;
  // elements() / last(); 0 if last() is 0.
  int64_t rows() const;
  bool operator==(const Shape& other) const;
  std::string to_string() const;  // "[4, 64]"

 private:
  std::array<int64_t, PAVO_MAX_RANK> dims_ = {};
  int32_t rank_ = 0;
};

struct Tensor {
  std::string name;
  int32_t type = PAVO_TYPE_F32;         // PAVO_TYPE_*
  int32_t role = PAVO_ROLE_ACTIVATION;  // PAVO_ROLE_*
  uint32_t uses = 0;                    // PAVO_USE_*, weights only
  Shape shape;
  std::array<int64_t, PAVO_MAX_RANK> stride = {};  // bytes; zero for weights and K/V pools
  TensorId view_of = kNoTensor;  // storage belongs to this tensor (never itself a view)
  int64_t view_offset = 0;       // bytes
};

struct Node {
  int32_t op = 0;  // pavo_op_<name>
  std::string name;
  std::vector<TensorId> inputs;  // kNoTensor for absent optional operands
  std::vector<TensorId> outputs;
  alignas(8) std::array<std::byte, 128> params = {};  // pavo_<op>_params
};

template <typename Params>
Params node_params(const Node& node) {
  static_assert(sizeof(Params) <= sizeof(Node::params));
  Params out;
  std::memcpy(&out, node.params.data(), sizeof out);
  return out;
}

// Sizes that a graph is built for; see pavo_bucket.
struct Bucket {
  int32_t tokens = 1;
  int32_t sequences = 1;
  int32_t outputs = 1;  // rows of logits
  int64_t kv_rows = 0;
  bool operator==(const Bucket&) const = default;
};

class Graph {
 public:
  explicit Graph(const Bucket& bucket) : bucket_(bucket) {}

  const Bucket& bucket() const { return bucket_; }
  const std::vector<Tensor>& tensors() const { return tensors_; }
  const std::vector<Node>& nodes() const { return nodes_; }
  const Tensor& tensor(TensorId id) const { return tensors_[id]; }

  // `uses` is filled in by the nodes that read the weight.
  Result<TensorId> add_weight(std::string name, int32_t type, const Shape& shape);
  // [pages, kv heads, PAVO_KV_PAGE_ROWS, head dim]
  Result<TensorId> add_kv_pool(std::string name, int32_t type, const Shape& shape);
  // i32, filled by the host before each step.
  Result<TensorId> add_step(std::string name, const Shape& shape);

  // Storage of `base` seen with another shape of as many elements; base must be contiguous.
  Result<TensorId> add_reshape(TensorId base, const Shape& shape);
  // Columns first..first+count-1 of the last dimension.
  Result<TensorId> add_columns(TensorId base, int64_t first, int64_t count);

  // Adds a node, checks arity and operands, infers the outputs. `output_count` within the op's
  // range. Params is pavo_<op>_params; its struct_size is set here.
  template <typename Params>
  Result<std::vector<TensorId>> add(
      int32_t op,
      std::string name,
      std::vector<TensorId> inputs,
      Params params,
      uint32_t output_count = 1) {
    static_assert(sizeof(Params) <= sizeof(Node::params));
    params.struct_size = sizeof(Params);
    Node node;
    node.op = op;
    node.name = std::move(name);
    node.inputs = std::move(inputs);
    std::memcpy(node.params.data(), &params, sizeof params);
    return add_node(std::move(node), output_count);
  }

  // Adds nodes that say what `node` says, and returns the tensors that stand for its outputs.
  using Expand = Result<std::vector<TensorId>> (*)(Graph& graph, const Node& node);
  // Puts others in the place of the nodes for which `choose` gives an Expand (NULL: it stays).
  // Tensors keep their ids. *origin, one number a node, is kept in step. After an error the graph
  // is of no more use.
  template <typename Choose>
  Status expand(Choose choose, std::vector<uint32_t>* origin) {
    std::vector<Node> old;
    old.swap(nodes_);
    std::vector<uint32_t> old_origin;
    old_origin.swap(*origin);
    for (size_t n = 0; n < old.size(); ++n) {
      const Expand parts = choose(static_cast<uint32_t>(n), old[n]);
      PAVO_RETURN_IF_ERROR(put(std::move(old[n]), parts));
      origin->resize(nodes_.size(), old_origin[n]);
    }
    return Status();
  }

  // The tensor whose storage this one uses: itself unless it is a view.
  TensorId storage(TensorId id) const {
    return tensors_[id].view_of == kNoTensor ? id : tensors_[id].view_of;
  }
  // Bytes that a tensor spans from its first to its last element; K/V pools by their page layout;
  // weights by their file layout.
  int64_t span_bytes(TensorId id) const;

 private:
  Result<std::vector<TensorId>> add_node(Node node, uint32_t output_count);
  Result<TensorId> add_tensor(Tensor tensor);
  Status put(Node node, Expand parts);
  Status check_operands(const Node& node) const;
  void note_weight_uses(const Node& node);

  Bucket bucket_;
  std::vector<Tensor> tensors_;
  std::vector<Node> nodes_;
};

}  // namespace pavo
