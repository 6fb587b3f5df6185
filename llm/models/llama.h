// The Llama family as a graph: Llama, Mistral, SmolLM2, Falcon3.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "llm/graph_builder.h"
#include "llm/model.h"
#include "llm/models/llama_config.h"

namespace pavo::llm {

class LlamaModel : public Model {
 public:
  static Result<std::unique_ptr<Model>> create(const ModelSource& source);

  const ModelInfo& info() const override { return info_; }
  std::map<std::string, HostTensor> weights() const override;
  std::vector<KvPoolSpec> kv_pools(const GraphOptions& options) const override;
  Result<ModelGraph> build(const Bucket& bucket, const GraphOptions& options) const override;

 private:
  struct Build;  // one graph under construction
  LlamaModel(LlamaConfig config, LlamaWeights weights);

  TensorId layer(Build& build, int64_t index, TensorId normed) const;
  TensorId attention(Build& build, int64_t index, TensorId normed) const;
  std::vector<const FileTensor*> all_weights() const;

  LlamaConfig config_;
  LlamaWeights weights_;
  ModelInfo info_;
};

}  // namespace pavo::llm
