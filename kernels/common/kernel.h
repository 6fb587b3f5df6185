// The form of every CUDA kernel: one struct with its constants, its predicate and its launch.
//
//   template <typename Arch>
//   struct NormRegisters {
//     static constexpr const char* kName = "norm_registers";  // op, format, strategy
//     static constexpr int32_t kOp = pavo_op_norm;
//     static constexpr int32_t kDecision = PAVO_ACCEPT;       // PAVO_ACCEPT_SLOW: works, not tuned
//     static constexpr int kThreads = 256;                    // the most that a block has
//     static constexpr int kMinBlocksPerSm = 4;               // register bound of the compiler
//     static bool supports(const NodeQuery& query, pavo_verdict* verdict);
//     static int64_t workspace_bytes(const NodeQuery& query);
//     static Cost cost(const NodeQuery& query);
//     static cudaError_t launch(const KernelArgs& args);
//   };
//
// supports, workspace_bytes and cost are host-only and pure; entry.h registers the struct. C++17,
// since .cu files read it.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cuda_runtime_api.h>

#include "pavo/plugin.h"
#include "pavo/plugin_helpers.h"

#include "kernels/common/caps.h"
#include "kernels/common/launch.h"

namespace pavo::cuda {

// What a predicate may look at. It is asked only about nodes that check_node (checks.h) has passed:
// arity, indices, ranks, types, roles and sizes are sound by themselves and do not overflow, and
// every activation has a dense last dimension and non-negative strides that are multiples of 4.
// Parameter structs are complete: fields that the host did not know are 0.
struct NodeQuery {
  const Caps& caps;
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

// A tensor and the device memory that it is bound to. Weights lie as weight_layout.h says, K/V
// pools as quant.h says. Weights are 256-byte aligned; other addresses have only the alignment of
// their element type (views), so vector loads need a look at the address (vec.cuh).
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

// One launch. `data` holds one device address per tensor of the graph. Values inside step tensors
// (ids, slots, pages, lengths) are whatever the host wrote: device code checks each before it uses
// it as an index. Addresses may change from run to run, everything else is fixed.
struct KernelArgs {
  const NodeQuery& query;
  std::byte* const* data;
  std::byte* workspace;  // workspace_bytes of the kernel, 256-byte aligned; NULL if none
  Launcher& launcher;

  Operand input(uint32_t index) const {
    return operand(query.node.inputs, query.node.input_count, index);
  }
  Operand output(uint32_t index) const {
    return operand(query.node.outputs, query.node.output_count, index);
  }
  template <typename Params>
  const Params& params() const {
    return query.params<Params>();
  }

 private:
  Operand operand(const uint32_t* list, uint32_t count, uint32_t index) const {
    if (index >= count || list[index] == PAVO_NO_TENSOR) {
      return {};
    }
    return {query.graph.tensors[list[index]], data[list[index]]};
  }
};

// Device memory traffic and arithmetic of one run at the bucket's sizes.
struct Cost {
  int64_t bytes = 0;
  double flops = 0;
};

struct Kernel {
  const char* name;
  int32_t op;
  int32_t decision;
  // True if launch can run the node; otherwise a refusal (sdk::refuse) is in *verdict.
  bool (*supports)(const NodeQuery& query, pavo_verdict* verdict);
  int64_t (*workspace_bytes)(const NodeQuery& query);
  Cost (*cost)(const NodeQuery& query);
  // Issues everything through args.launcher, so that runs can be counted, captured and checked.
  cudaError_t (*launch)(const KernelArgs& args);
};

// The variants of one family, best first; static storage.
struct KernelList {
  const Kernel* data;
  size_t size;

  const Kernel* begin() const { return data; }
  const Kernel* end() const { return data + size; }
};

}  // namespace pavo::cuda
