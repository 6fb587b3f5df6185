// One node with its data, run on a backend through plugin.h alone: buffers, copies, timelines. No
// address of device memory is ever read, so a GPU plugin goes through the same code.
//
// Around every tensor lie guard bytes that must survive, inputs must stay as they were, and outputs
// are full of NaN before the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "pavo/plugin.h"
#include "pavo/plugin_helpers.h"

#include "tests/ops/backend.h"

namespace pavo::test {

using Shape = std::vector<int64_t>;

// A tensor and its bytes as they are bound (a weight: as in the file).
struct HostTensor {
  pavo_tensor desc{};
  std::vector<std::byte> bytes;
  bool is_output = false;

  int64_t elements() const { return sdk::element_count(desc); }
  // Byte offset of an element of the flattened tensor; of weights only f32 ones, no pools.
  int64_t offset(int64_t index) const;
  float at(int64_t index) const;
};

// Activation with these values; row_gap bytes lie unused behind each row.
HostTensor activation(const Shape& shape, const std::vector<float>& values, int64_t row_gap = 0);
// Output, full of NaN.
HostTensor output(const Shape& shape, int64_t row_gap = 0);
HostTensor step(const Shape& shape, const std::vector<int32_t>& values);
HostTensor step_f32(const Shape& shape, const std::vector<float>& values);
HostTensor weight(int32_t type, const Shape& shape, std::vector<std::byte> rows, uint32_t uses);
HostTensor weight_f32(const std::vector<float>& values, uint32_t uses = PAVO_USE_DENSE);
// K/V pool [pages, heads, 64, dim] with these bytes, all heads of all pages.
HostTensor kv_pool(
    int32_t type, int64_t pages, int64_t heads, int64_t dim, std::vector<std::byte> bytes);

// The same values with the elements of the dimension before the last one outermost in memory.
HostTensor reordered(const HostTensor& tensor);

struct OpCase {
  int32_t op = 0;
  std::vector<std::byte> params;
  std::vector<HostTensor> tensors;
  std::vector<uint32_t> inputs;
  std::vector<uint32_t> outputs;
  pavo_bucket bucket{sizeof(pavo_bucket), 1, 1, 0, 0};
  // Added to the offset of weights in their buffers where the plugin allows any alignment.
  int64_t weight_shift = 0;
  // Of activation i, in steps of 4 bytes: added 1 + i % 3 times to its offset.
  int64_t activation_shift = 0;

  template <typename Params>
  void set_params(int32_t op_id, Params values) {
    values.struct_size = sizeof values;
    op = op_id;
    params.resize(sizeof values);
    std::memcpy(params.data(), &values, sizeof values);
    bucket.tokens = 1;
  }
  void add_input(HostTensor tensor);
  void skip_input() { inputs.push_back(PAVO_NO_TENSOR); }
  void add_output(HostTensor tensor);
  const HostTensor& output_tensor(size_t index) const { return tensors[outputs[index]]; }
};

// The graph of the case's one node; points into the case.
struct CaseGraph {
  explicit CaseGraph(const OpCase& test_case);
  CaseGraph(const CaseGraph&) = delete;
  CaseGraph& operator=(const CaseGraph&) = delete;

  std::vector<const pavo_tensor*> tensors;
  pavo_node node{};
  const pavo_node* nodes[1] = {&node};
  pavo_graph graph{};
};

struct OpRun {
  pavo_verdict verdict{};
  int32_t code = PAVO_OK;           // of the failing call, or of the work itself
  std::string message;              // of code
  std::vector<std::string> damage;  // guard bytes or inputs that changed
  std::vector<HostTensor> tensors;  // as in the case, after the run

  bool refused() const { return verdict.decision == PAVO_REFUSE; }
};

// Asks, and if the node is accepted prepares and runs it. A refused node is prepared too: that has
// to fail, and code says how.
OpRun run_case(const Backend& backend, const OpCase& test_case);

}  // namespace pavo::test
