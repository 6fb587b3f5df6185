// The form of every CPU kernel, and the only way to register one.
//
// A kernel is one struct:
//
//   struct NormRms {
//     static constexpr const char* kName = "norm_rms";       // op, format, strategy
//     static constexpr int32_t kOp = pavo_op_norm;
//     static constexpr int32_t kDecision = PAVO_ACCEPT;      // PAVO_ACCEPT_SLOW: works, not tuned
//     static bool supports(const NodeQuery& query, pavo_verdict* verdict);
//     static int64_t workspace_bytes(const NodeQuery& query);
//     static int32_t launch(const KernelArgs& args, pavo_error* error);
//   };
//   std::span<const Kernel> norm_kernels() {                  // best first
//     static constexpr Kernel kKernels[] = {entry<NormRms>()};
//     return kKernels;
//   }
//
// and its family is one line of kernels.inc. supports and launch read the same constants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "pavo/plugin.h"
#include "pavo/plugin_helpers.h"

#include "plugins/cpu/options.h"
#include "plugins/cpu/thread_pool.h"

namespace pavo::cpu {

// What a predicate may look at. It is asked only about nodes that check_node (checks.h) has passed:
// arity, indices, ranks, roles and shapes are as ops.inc says, sizes do not overflow, and every
// activation has a dense last dimension and non-negative byte strides that are multiples of 4. All
// parameter structs are complete: fields that the host did not know are 0.
struct NodeQuery {
  const Options& options;
  const pavo_graph& graph;
  const pavo_node& node;

  // Operand by position; NULL if it is absent.
  const pavo_tensor* input(uint32_t index) const { return sdk::input(graph, node, index); }
  const pavo_tensor* output(uint32_t index) const { return sdk::output(graph, node, index); }
  template <typename Params>
  const Params& params() const {
    return sdk::params<Params>(node);
  }
};

// A tensor and the memory that it is bound to. Memory of a weight is rows as in the file, of a K/V
// pool pages as in quant.h. Addresses have only the element type's alignment.
struct Operand {
  const pavo_tensor* tensor = nullptr;
  std::byte* data = nullptr;

  explicit operator bool() const { return tensor != nullptr; }
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data);
  }
  int64_t dim(int32_t index) const { return tensor->shape[index]; }
};

// One launch. `data` holds one address per tensor of the graph; every operand of the node is bound
// and its memory lies within its buffer. Values inside step tensors (ids, slots, pages, lengths)
// are whatever the host wrote: a kernel checks each before it uses it as an index.
struct KernelArgs {
  const pavo_graph& graph;
  const pavo_node& node;
  std::byte* const* data;
  std::byte* workspace;  // workspace_bytes of the kernel, 64-byte aligned; NULL if none
  ThreadPool& pool;

  Operand input(uint32_t index) const { return operand(node.inputs, node.input_count, index); }
  Operand output(uint32_t index) const { return operand(node.outputs, node.output_count, index); }
  template <typename Params>
  const Params& params() const {
    return sdk::params<Params>(node);
  }

 private:
  Operand operand(const uint32_t* list, uint32_t count, uint32_t index) const {
    if (index >= count || list[index] == PAVO_NO_TENSOR) {
      return {};
    }
    return {graph.tensors[list[index]], data[list[index]]};
  }
};

struct Kernel {
  const char* name;
  int32_t op;
  int32_t decision;
  // True if launch can run the node; otherwise a refusal (sdk::refuse) is in *verdict. Pure.
  bool (*supports)(const NodeQuery& query, pavo_verdict* verdict);
  // Bytes of KernelArgs::workspace for a supported node with options.threads threads. Pure.
  int64_t (*workspace_bytes)(const NodeQuery& query);
  // PAVO_OK, or PAVO_ERROR_NODE_FAILED if a step tensor holds an impossible value. Does not throw
  // and does not allocate.
  int32_t (*launch)(const KernelArgs& args, pavo_error* error);
};

template <typename K>
constexpr Kernel entry() {
  static_assert(K::kDecision == PAVO_ACCEPT || K::kDecision == PAVO_ACCEPT_SLOW);
  static_assert(std::string_view(K::kName).size() < sizeof(pavo_verdict::variant));
  return {K::kName, K::kOp, K::kDecision, &K::supports, &K::workspace_bytes, &K::launch};
}

}  // namespace pavo::cpu
