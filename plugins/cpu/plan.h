// A prepared segment: the graph's copy and the kernel chosen for each node.
#pragma once

#include <cstdint>
#include <vector>

#include "pavo/plugin.h"

#include "plugins/cpu/graph_copy.h"
#include "plugins/cpu/kernel.h"

struct pavo_plan {
 public:
  explicit pavo_plan(pavo_device* device) : device_(device) {}

  // Asks the predicates again, so that a plan never holds a node that its kernel cannot run.
  int32_t init(const pavo_graph* graph, pavo_error* error);

  int32_t launches() const { return static_cast<int32_t>(kernels_.size()); }
  int64_t workspace_bytes() const { return workspace_bytes_; }

  // Runs the nodes in order; done when it returns.
  int32_t submit(const pavo_submit& submit, pavo_error* error);

  int32_t timings(int64_t* node_ns, uint32_t node_count, pavo_error* error) const;

 private:
  int32_t bind(const pavo_submit& submit, pavo_error* error);
  int32_t bind_operand(
      const pavo_submit& submit, const pavo_node& node, uint32_t operand, pavo_error* error);
  int32_t run(pavo_error* error);

  pavo_device* device_;
  pavo::cpu::GraphCopy graph_;
  std::vector<const pavo::cpu::Kernel*> kernels_;  // one per node
  std::vector<int64_t> extents_;                   // bytes per tensor
  int64_t workspace_bytes_ = 0;
  std::vector<std::byte*> data_;  // per tensor, of the run at hand
  std::byte* workspace_ = nullptr;
  std::vector<int64_t> node_ns_;
};
