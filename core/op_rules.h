// What core knows about an op: its name and arity (from ops.inc), how its outputs follow from its
// inputs, and what a perfect implementation would read, write and compute. One file an op in
// core/ops/; a missing one is a link error.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/graph.h"

namespace pavo {

// Least bytes moved to and from memory and floating-point operations, at the bucket's sizes.
struct IdealCost {
  int64_t bytes = 0;
  int64_t flops = 0;
};

// An output that a rule wants: a new activation, or an input written in place.
struct OutputRule {
  Shape shape;                  // f32 activation
  int32_t in_place_input = -1;  // input index that is the output itself
};

// Operands as a rule sees them; inputs[i] is nullptr if absent.
struct OpView {
  const Node& node;
  std::span<const Tensor* const> inputs;
  const Bucket& bucket;
  uint32_t output_count;

  const Tensor* input(size_t index) const {
    return index < inputs.size() ? inputs[index] : nullptr;
  }
};

struct OpRules {
  Result<std::vector<OutputRule>> (*infer)(const OpView& view);
  // `outputs` as inferred.
  IdealCost (*cost)(const OpView& view, std::span<const Tensor* const> outputs);
  // PAVO_USE_* of input `index` if it is a weight.
  uint32_t (*weight_use)(size_t index);
};

struct OpInfo {
  int32_t id;
  const char* name;
  uint32_t inputs_min, inputs_max;
  uint32_t outputs_min, outputs_max;
  OpRules rules;
};

// nullptr for an unknown id.
const OpInfo* find_op(int32_t id);
std::span<const OpInfo> all_ops();

#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) OpRules name##_rules();
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD

// Of a node of the graph, whose operands have been checked when it was added.
IdealCost ideal_cost(const Graph& graph, const Node& node);

// ---- Helpers for rules ----
// Status naming op, operand, what was expected and what was found.
Status operand_error(const OpView& view, size_t index, const std::string& expected);
// Bytes of a tensor's elements as stored in the file or in memory (not of K/V pools).
int64_t stored_bytes(const Tensor& tensor);

}  // namespace pavo
