// A graph written as equations: each call adds one node and returns its output. The first failure
// is remembered and makes the calls after it return kNoTensor; finish() reports it.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/graph.h"

namespace pavo::llm {

// Letters as in ops.inc. Names become node names ("blk.0.attn_q"), which rules and traces match.
class GraphBuilder {
 public:
  explicit GraphBuilder(const Bucket& bucket) : graph_(bucket) {}

  TensorId weight(const std::string& name, int32_t type, const Shape& shape);
  TensorId kv_pool(const std::string& name, int32_t type, const Shape& shape);
  TensorId step(const std::string& name, const Shape& shape);
  TensorId reshape(TensorId x, const Shape& shape);

  TensorId embed(const std::string& name, TensorId table, TensorId ids);
  TensorId matmul(const std::string& name, TensorId x, TensorId w, TensorId bias, bool exact);
  TensorId rms_norm(const std::string& name, TensorId x, TensorId weight, float eps);
  // {rms_norm(x + residual), x + residual}
  std::pair<TensorId, TensorId> add_rms_norm(
      const std::string& name, TensorId x, TensorId residual, TensorId weight, float eps);
  TensorId rope(
      const std::string& name,
      TensorId x,
      TensorId positions,
      TensorId factors,
      const pavo_rope_params& params);
  void kv_store(const std::string& name, TensorId x, TensorId pool, TensorId slots);
  TensorId attention(
      const std::string& name, std::vector<TensorId> operands, const pavo_attention_params& params);
  TensorId glu(const std::string& name, TensorId gate, TensorId up, int32_t kind);
  TensorId add(const std::string& name, TensorId a, TensorId b);

  const Shape& shape(TensorId id) const;
  Result<Graph> finish() &&;

 private:
  template <typename Params>
  std::vector<TensorId> node(
      int32_t op,
      const std::string& name,
      std::vector<TensorId> inputs,
      const Params& params,
      uint32_t output_count = 1);
  TensorId keep(Result<TensorId> id);

  Graph graph_;
  Status status_;
};

}  // namespace pavo::llm
