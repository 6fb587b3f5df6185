// A graph made ready to run: placed on devices, cut into segments, memory planned, plans prepared.
//
// A program belongs to one bucket of sizes. What changes from step to step is written with
// set_step() before run(). All programs of a model share one ProgramContext: devices, weights, K/V
// pools and arenas.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device.h"
#include "core/graph.h"
#include "core/graph_view.h"
#include "core/kv_pool.h"
#include "core/placement.h"
#include "core/trace.h"
#include "core/weight_store.h"

namespace pavo {

// Memory of a device that programs use one after the other; grows, never shrinks.
class Arena {
 public:
  // Makes the arena at least this large. Work that uses it must be done.
  Status reserve(Device& device, int64_t size_bytes);
  const Buffer& buffer() const { return buffer_; }

 private:
  Buffer buffer_;
};

struct ProgramContext {
  std::vector<Device*> devices;  // in rank order
  WeightStore* weights = nullptr;
  std::map<std::string, std::unique_ptr<KvPool>> kv_pools;  // by tensor name
  std::vector<Arena> activations;                           // by device
  std::vector<Arena> workspaces;
  std::vector<std::byte> staging;
  Trace* trace = nullptr;  // may be absent; told of every step
};

// What one run moved and how long it took.
struct RunStats {
  int64_t host_ns = 0;  // in run(), until the queues have the whole step
  int64_t total_ns = 0;
  int64_t kv_bytes_moved = 0;  // K/V rows between devices
  int64_t activation_bytes_moved = 0;
  int32_t launches = 0;
};

class Program {
 public:
  // outputs: activations that the host reads after a run. The context must outlive the program.
  // What a device refuses is given to it in simpler ops where it takes those (device_lowering.h).
  static Result<std::unique_ptr<Program>> create(
      Graph graph,
      std::vector<TensorId> outputs,
      const PlacementOptions& options,
      ProgramContext& context);
  ~Program();

  const Graph& graph() const { return graph_; }
  const Placement& placement() const { return placement_; }
  int32_t launches() const;  // of one run, over all segments

  // Copies the values; the count must be that of the step tensor.
  Status set_step(TensorId tensor, std::span<const int32_t> values);
  // Runs every segment and waits for the last. After a failure the K/V rows of this step are
  // undefined; everything else is as before.
  Result<RunStats> run();
  // Elements first..first+out.size()-1 of an output, after run().
  Status read_output(TensorId tensor, int64_t first, std::span<float> out);

 private:
  struct PreparedSegment {
    uint32_t device = 0;
    std::vector<uint32_t> nodes;
    std::unique_ptr<GraphView> view;
    Plan plan;
    std::vector<TensorId> copies_in;                    // storages to fetch before it runs
    std::vector<TensorId> pools_read;                   // K/V pools to refresh before it runs
    std::vector<std::pair<TensorId, TensorId>> stores;  // (pool, slots) that it writes
    std::vector<pavo_binding> bindings;
    int64_t submitted_ns = 0;  // in the last run
  };
  // Where activations and step tensors lie on one device.
  struct DeviceLayout {
    std::map<TensorId, int64_t> offsets;  // by storage, in the device's activation arena
    int64_t arena_bytes = 0;
    std::vector<TensorId> steps;  // step tensors used here
    std::map<TensorId, int64_t> step_offsets;
    int64_t step_bytes = 0;
    Buffer step_buffer;
    std::vector<std::byte> step_staging;  // host copy of step_buffer
  };

  Program(Graph graph, std::vector<TensorId> outputs, ProgramContext& context);
  void make_segments_and_edges();
  void plan_activations();
  Status make_step_buffers();
  Status prepare_plans();
  Status bind_segment(PreparedSegment& segment);
  Result<pavo_binding> bind_tensor(uint32_t device, TensorId tensor);
  Status upload_steps();
  Status fetch_inputs(const PreparedSegment& segment, RunStats* stats);
  Status run_segment(PreparedSegment& segment, RunStats* stats);
  void trace_nodes(Trace& trace);

  Graph graph_;
  std::vector<TensorId> outputs_;
  ProgramContext& context_;
  Placement placement_;
  std::vector<PreparedSegment> segments_;
  std::vector<DeviceLayout> layouts_;       // by device
  std::map<TensorId, uint32_t> producers_;  // storage of an activation to its device
  std::map<TensorId, std::vector<int32_t>> step_values_;
};

}  // namespace pavo
