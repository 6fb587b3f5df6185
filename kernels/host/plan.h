// A prepared segment: the graph's copy, the kernel of each node, and its captured CUDA graphs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <cuda_runtime_api.h>

#include "pavo/plugin.h"

#include "kernels/host/device.h"
#include "kernels/host/graph_cache.h"
#include "kernels/host/graph_copy.h"
#include "kernels/host/timeline.h"

// [device]
struct pavo_plan {
 public:
  explicit pavo_plan(pavo_device* device) : device_(device) {}
  // Waits for its runs.
  ~pavo_plan();
  pavo_plan(const pavo_plan&) = delete;
  pavo_plan& operator=(const pavo_plan&) = delete;

  // Asks the predicates again, so that a plan never holds a node that its kernel cannot run.
  int32_t init(const pavo_graph* graph, pavo_error* error);

  pavo_device* device() const { return device_; }
  int32_t launches() const { return launches_; }
  int64_t workspace_bytes() const { return workspace_bytes_; }
  const pavo::cuda::GraphCache& graphs() const { return graphs_; }

  int32_t submit(const pavo_submit& submit, pavo_error* error);
  int32_t timings(int64_t* node_ns, uint32_t node_count, pavo_error* error);

 private:
  int32_t choose_kernels(pavo_error* error);
  int32_t count_launches(pavo_error* error);
  int32_t make_timers(pavo_error* error);
  int32_t bind(const pavo_submit& submit, pavo_error* error);
  int32_t bind_tensor(uint32_t index, const pavo_binding& binding, pavo_error* error);
  int32_t run(pavo_error* error);
  int32_t launch_all(pavo::cuda::Launcher& launcher, pavo_error* error);
  int32_t launch_node(uint32_t index, pavo::cuda::Launcher& launcher, pavo_error* error);

  pavo_device* const device_;
  pavo::cuda::GraphCopy graph_;
  std::vector<const pavo::cuda::Kernel*> kernels_;  // one per node
  std::vector<int64_t> extents_;                    // per tensor: bytes to be bound, -1: unused
  int64_t workspace_bytes_ = 0;
  int32_t launches_ = 0;
  int64_t runs_ = 0;
  std::vector<std::byte*> data_;     // per tensor, then the workspace: addresses of the run at hand
  std::vector<cudaEvent_t> timers_;  // option timings: before the first node and after each
  pavo::cuda::GraphCache graphs_;
};
