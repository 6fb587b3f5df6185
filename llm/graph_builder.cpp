#include "llm/graph_builder.h"

namespace pavo::llm {

TensorId GraphBuilder::keep(Result<TensorId> id) {
  if (id.ok()) {
    return *id;
  }
  if (status_.ok()) {
    status_ = id.status();
  }
  return kNoTensor;
}

template <typename Params>
std::vector<TensorId> GraphBuilder::node(
    int32_t op,
    const std::string& name,
    std::vector<TensorId> inputs,
    const Params& params,
    uint32_t output_count) {
  if (status_.ok()) {
    auto outputs = graph_.add(op, name, std::move(inputs), params, output_count);
    if (outputs.ok()) {
      return std::move(outputs).value();
    }
    status_ = outputs.status();
  }
  return std::vector<TensorId>(output_count, kNoTensor);
}

TensorId GraphBuilder::weight(const std::string& name, int32_t type, const Shape& shape) {
  return status_.ok() ? keep(graph_.add_weight(name, type, shape)) : kNoTensor;
}

TensorId GraphBuilder::kv_pool(const std::string& name, int32_t type, const Shape& shape) {
  return status_.ok() ? keep(graph_.add_kv_pool(name, type, shape)) : kNoTensor;
}

TensorId GraphBuilder::step(const std::string& name, const Shape& shape) {
  return status_.ok() ? keep(graph_.add_step(name, shape)) : kNoTensor;
}

TensorId GraphBuilder::reshape(TensorId x, const Shape& shape) {
  return status_.ok() ? keep(graph_.add_reshape(x, shape)) : kNoTensor;
}

TensorId GraphBuilder::embed(const std::string& name, TensorId table, TensorId ids) {
  return node(pavo_op_embed, name, {table, ids}, pavo_embed_params{})[0];
}

TensorId GraphBuilder::matmul(
    const std::string& name, TensorId x, TensorId w, TensorId bias, bool exact) {
  pavo_matmul_params params = {};
  params.precision = exact ? PAVO_PRECISION_EXACT : PAVO_PRECISION_DEFAULT;
  std::vector<TensorId> inputs = {x, w};
  if (bias != kNoTensor) {
    inputs.push_back(bias);
  }
  return node(pavo_op_matmul, name, std::move(inputs), params)[0];
}

TensorId GraphBuilder::rms_norm(const std::string& name, TensorId x, TensorId weight, float eps) {
  pavo_norm_params params = {};
  params.kind = PAVO_NORM_RMS;
  params.eps = eps;
  return node(pavo_op_norm, name, {x, weight}, params)[0];
}

std::pair<TensorId, TensorId> GraphBuilder::add_rms_norm(
    const std::string& name, TensorId x, TensorId residual, TensorId weight, float eps) {
  pavo_norm_params params = {};
  params.kind = PAVO_NORM_RMS;
  params.eps = eps;
  const auto outputs = node(pavo_op_norm, name, {x, weight, kNoTensor, residual}, params, 2);
  return {outputs[0], outputs[1]};
}

TensorId GraphBuilder::rope(
    const std::string& name,
    TensorId x,
    TensorId positions,
    TensorId factors,
    const pavo_rope_params& params) {
  std::vector<TensorId> inputs = {x, positions};
  if (factors != kNoTensor) {
    inputs.push_back(factors);
  }
  return node(pavo_op_rope, name, std::move(inputs), params)[0];
}

void GraphBuilder::kv_store(const std::string& name, TensorId x, TensorId pool, TensorId slots) {
  node(pavo_op_kv_store, name, {x, pool, slots}, pavo_kv_store_params{});
}

TensorId GraphBuilder::attention(
    const std::string& name, std::vector<TensorId> operands, const pavo_attention_params& params) {
  return node(pavo_op_attention, name, std::move(operands), params)[0];
}

TensorId GraphBuilder::glu(const std::string& name, TensorId gate, TensorId up, int32_t kind) {
  pavo_glu_params params = {};
  params.kind = kind;
  return node(pavo_op_glu, name, {gate, up}, params)[0];
}

TensorId GraphBuilder::add(const std::string& name, TensorId a, TensorId b) {
  pavo_binary_params params = {};
  params.kind = PAVO_BINARY_ADD;
  return node(pavo_op_binary, name, {a, b}, params)[0];
}

const Shape& GraphBuilder::shape(TensorId id) const {
  static const Shape none;
  return id == kNoTensor ? none : graph_.tensor(id).shape;
}

Result<Graph> GraphBuilder::finish() && {
  if (!status_.ok()) {
    return status_;
  }
  return std::move(graph_);
}

}  // namespace pavo::llm
