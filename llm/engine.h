// Runs a model on devices: tokens of one or several sequences in, logits out.
//
// The engine owns the K/V cache and one prepared program per bucket of sizes. One thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/program.h"
#include "llm/kv_cache.h"
#include "llm/model.h"

namespace pavo::llm {

struct EngineOptions {
  int64_t context = 0;    // rows a sequence may hold; 0: the model's, at most kDefaultContext
  int32_t batch = 512;    // most tokens of one step
  int32_t sequences = 1;  // that may be alive at once
  int32_t k_type = PAVO_TYPE_F16;
  int32_t v_type = PAVO_TYPE_F16;
  bool exact = false;
  PlacementOptions placement;
  Trace* trace = nullptr;  // may be absent; must outlive the engine
};

inline constexpr int64_t kDefaultContext = 4096;

enum class Outputs { kNone, kLast, kAll };

// New tokens of one sequence.
struct SequenceInput {
  SequenceId sequence = 0;
  std::span<const int32_t> tokens;
  Outputs outputs = Outputs::kLast;
};

struct EngineStats {
  int64_t steps = 0;
  RunStats last;         // of the last step
  int64_t host_ns = 0;   // sum over all steps: from the call until the queues have the whole step
  int64_t total_ns = 0;  // sum over all steps: from the call until its logits are here
  int64_t kv_bytes_moved = 0;
  int64_t activation_bytes_moved = 0;
  int64_t programs_made = 0;
};

class Engine {
 public:
  // `source` must outlive the engine; devices come in rank order, the CPU usually last.
  static Result<std::unique_ptr<Engine>> create(
      const ModelSource& source,
      std::vector<std::unique_ptr<Device>> devices,
      const EngineOptions& options);
  ~Engine();

  const ModelInfo& info() const { return model_->info(); }
  int64_t context() const { return options_.context; }
  int32_t batch() const { return options_.batch; }
  const EngineStats& stats() const { return stats_; }
  int64_t kv_bytes_per_token() const;
  int64_t weight_bytes_packed() const { return weights_->packed_bytes(); }

  // kOutOfMemory if options.sequences are alive.
  Result<SequenceId> create_sequence();
  void release_sequence(SequenceId sequence);
  // Rows (tokens) that the sequence holds.
  int64_t length(SequenceId sequence) const { return cache_->length(sequence); }
  void truncate(SequenceId sequence, int64_t length) { cache_->truncate(sequence, length); }

  // One step over several sequences, at most batch() tokens together. Logits of the wanted rows, in
  // the order of the inputs: [rows, vocabulary]. On failure the sequences are as before.
  Result<std::vector<float>> step(std::span<const SequenceInput> inputs);
  // Any number of tokens of one sequence, in steps of at most batch(). kAll collects every row's
  // logits: mind the memory. `keep_going` (may be empty) is asked between steps; kCancelled if it
  // says no.
  Result<std::vector<float>> decode(
      SequenceId sequence,
      std::span<const int32_t> tokens,
      Outputs outputs,
      const std::function<bool()>& keep_going = {});

  // Placement of one-token steps; makes and prepares their program if there is none yet.
  Result<PlacementSummary> placement_summary();
  // Launches of a one-token step.
  Result<int32_t> launches_per_token();
  // Prepares one-token steps, packing all weights.
  Status warm_up();

 private:
  struct Prepared {
    Bucket bucket;
    StepTensors steps;
    TensorId logits;
    std::unique_ptr<Program> program;
  };
  struct StepData;  // values of the step tensors

  Engine(std::unique_ptr<Model> model, std::vector<std::unique_ptr<Device>> devices);
  Status set_up(const EngineOptions& options);
  Result<Prepared*> prepare(const Bucket& bucket);
  Bucket bucket_for(std::span<const SequenceInput> inputs, int32_t outputs) const;
  StepData make_step_data(std::span<const SequenceInput> inputs, const Bucket& bucket) const;
  Status check_inputs(std::span<const SequenceInput> inputs) const;
  void count(const RunStats& stats, int64_t before_ns, int64_t after_ns);

  // Order matters: programs go before pools and weights, these before devices.
  std::unique_ptr<Model> model_;
  std::vector<std::unique_ptr<Device>> devices_;
  EngineOptions options_;
  GraphOptions graph_options_;
  std::unique_ptr<WeightStore> weights_;
  ProgramContext context_;
  std::unique_ptr<KvCache> cache_;
  std::list<Prepared> prepared_;  // most recently used first
  int32_t alive_ = 0;
  EngineStats stats_;
};

}  // namespace pavo::llm
