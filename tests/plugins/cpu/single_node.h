// A one-node graph that tests may spoil field by field.
#pragma once

#include <cstdint>
#include <vector>

#include "pavo/plugin.h"
#include "pavo/plugin_helpers.h"

#include "tests/ops/backend.h"

namespace pavo::test {

// matmul: x [2,32] f32, w [3,32], y [2,3]; tensors 0, 1, 2.
struct MatmulNode {
  MatmulNode() {
    set(0, PAVO_ROLE_ACTIVATION, 2, 32);
    set(1, PAVO_ROLE_WEIGHT, 3, 32);
    set(2, PAVO_ROLE_ACTIVATION, 2, 3);
    params.struct_size = sizeof params;
    node.struct_size = sizeof node;
    node.op = pavo_op_matmul;
    node.id = 77;
    node.input_count = 2;
    node.output_count = 1;
    node.inputs = inputs;
    node.outputs = outputs;
    node.params = &params;
    node.name = sdk::string("blk.0.test");
    bucket.struct_size = sizeof bucket;
    bucket.tokens = 2;
    bucket.sequences = 1;
    graph.struct_size = sizeof graph;
    graph.tensor_count = 3;
    graph.tensors = tensor_list;
    graph.node_count = 1;
    graph.nodes = node_list;
    graph.bucket = &bucket;
  }
  MatmulNode(const MatmulNode&) = delete;
  MatmulNode& operator=(const MatmulNode&) = delete;

  void set(size_t index, int32_t role, int64_t rows, int64_t columns) {
    pavo_tensor& tensor = tensors[index];
    tensor = {};
    tensor.struct_size = sizeof tensor;
    tensor.type = PAVO_TYPE_F32;
    tensor.role = role;
    tensor.rank = 2;
    tensor.shape[0] = rows;
    tensor.shape[1] = columns;
    if (role == PAVO_ROLE_WEIGHT) {
      tensor.uses = PAVO_USE_MATMUL;
    } else {
      tensor.stride[0] = columns * 4;
      tensor.stride[1] = 4;
    }
  }

  int32_t query(const Backend& backend, pavo_verdict* verdict, pavo_error* error) const {
    *verdict = {};
    verdict->struct_size = sizeof *verdict;
    pavo_verdict* const verdicts[] = {verdict};
    return backend.api().query_nodes(backend.plugin(), backend.caps(), &graph, verdicts, error);
  }

  pavo_tensor tensors[3];
  uint32_t inputs[3] = {0, 1, PAVO_NO_TENSOR};
  uint32_t outputs[2] = {2, PAVO_NO_TENSOR};
  pavo_matmul_params params{};
  pavo_node node{};
  pavo_bucket bucket{};
  pavo_graph graph{};
  const pavo_tensor* tensor_list[3] = {&tensors[0], &tensors[1], &tensors[2]};
  const pavo_node* node_list[1] = {&node};
};

}  // namespace pavo::test
