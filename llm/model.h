// What the engine needs of a model family: sizes, weights, and a graph for any bucket.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/graph.h"
#include "core/status.h"
#include "core/weight_store.h"
#include "llm/model_file.h"

namespace pavo::llm {

// Per-step tensors of a graph; T tokens, S sequences, R output rows, P pages a sequence. What they
// hold is told at `attention` and `kv_store` in ops.inc.
struct StepTensors {
  TensorId ids = kNoTensor;          // [T] token ids
  TensorId positions = kNoTensor;    // [T] position of each token, also its K/V row
  TensorId row_seq = kNoTensor;      // [T]
  TensorId seq_rows = kNoTensor;     // [S+1]
  TensorId lengths = kNoTensor;      // [S]
  TensorId page_table = kNoTensor;   // [S,P]
  TensorId slots = kNoTensor;        // [T]
  TensorId output_rows = kNoTensor;  // [R] tokens whose logits are wanted; absent if R == T
};

struct ModelGraph {
  Graph graph{Bucket{}};
  StepTensors steps;
  TensorId logits = kNoTensor;  // [R, vocabulary]
};

// How graphs of one engine are built; the same for all its buckets.
struct GraphOptions {
  int32_t k_type = PAVO_TYPE_F16;
  int32_t v_type = PAVO_TYPE_F16;
  int64_t pages = 0;               // of every K/V pool
  int64_t pages_per_sequence = 0;  // P
  bool exact = false;              // no int8 activations
};

// A K or V pool that the graphs name.
struct KvPoolSpec {
  std::string name;
  int32_t type;
  Shape shape;
};

struct ModelInfo {
  std::string architecture;
  int64_t vocab_size = 0;
  int64_t context_length = 0;  // as trained
  int64_t layers = 0;
  int64_t parameters = 0;
  int64_t weight_bytes = 0;
};

// Immutable after creation; any thread. `source` must outlive it.
class Model {
 public:
  virtual ~Model() = default;
  virtual const ModelInfo& info() const = 0;
  virtual std::map<std::string, HostTensor> weights() const = 0;
  virtual std::vector<KvPoolSpec> kv_pools(const GraphOptions& options) const = 0;
  virtual Result<ModelGraph> build(const Bucket& bucket, const GraphOptions& options) const = 0;
};

// Chooses the family by architecture; kUnsupported names those that there are.
Result<std::unique_ptr<Model>> make_model(const ModelSource& source);

}  // namespace pavo::llm
