#include "kernels/common/checks.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cmath>
#include <iterator>

#include "kernels/common/rows.h"
#include "kernels/common/weight_layout.h"

namespace pavo::cuda {
namespace {

using sdk::refuse;

struct Arity {
  int32_t op;
  uint32_t inputs_min, inputs_max, outputs_min, outputs_max;
};

#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  {id, in_min, in_max, out_min, out_max},
constexpr Arity kArities[] = {
#include "pavo/ops.inc"
};
#undef PAVO_OP
#undef PAVO_FIELD

const char* role_name(int32_t role) {
  constexpr const char* kNames[] = {"activation", "weight", "K/V pool", "step", "state"};
  return role >= 0 && role < static_cast<int32_t>(std::size(kNames)) ? kNames[role] : "?";
}

// Checks of one operand by itself.
class OperandCheck {
 public:
  OperandCheck(const pavo_tensor& tensor, int32_t operand, pavo_verdict* verdict)
      : tensor_(tensor), operand_(operand), verdict_(verdict) {}

  bool shape() {
    if (tensor_.rank < 0 || tensor_.rank > PAVO_MAX_RANK) {
      return refuse(
          verdict_,
          PAVO_REASON_SHAPE_RANGE,
          operand_,
          -1,
          PAVO_MAX_RANK,
          tensor_.rank,
          "expected a rank of 0..%d, got %d",
          PAVO_MAX_RANK,
          tensor_.rank);
    }
    int64_t count = 1;
    for (int32_t i = 0; i < tensor_.rank; ++i) {
      const int64_t size = tensor_.shape[i];
      if (size < 0 || __builtin_mul_overflow(count, size, &count) || count > kMaxElements) {
        return refuse(
            verdict_,
            PAVO_REASON_SHAPE_RANGE,
            operand_,
            i,
            kMaxElements,
            size,
            "dimension %d of %" PRId64 " is negative or makes the tensor too large",
            i,
            size);
      }
    }
    return true;
  }

  bool type() {
    bool known = pavo_type_block_values(tensor_.type) != 0;
    switch (tensor_.role) {
      case PAVO_ROLE_ACTIVATION:
      case PAVO_ROLE_STEP:
        known = tensor_.type == PAVO_TYPE_F32 || tensor_.type == PAVO_TYPE_I32;
        break;
      case PAVO_ROLE_STATE:
        known = tensor_.type == PAVO_TYPE_F32;
        break;
      case PAVO_ROLE_WEIGHT:
        known = known && whole_blocks();
        break;
      case PAVO_ROLE_KV_POOL:
        break;
      default:
        return refuse(
            verdict_,
            PAVO_REASON_ROLE,
            operand_,
            -1,
            PAVO_ROLE_STATE,
            tensor_.role,
            "unknown role %d",
            tensor_.role);
    }
    return known || refuse(
                        verdict_,
                        PAVO_REASON_TYPE,
                        operand_,
                        -1,
                        PAVO_TYPE_F32,
                        tensor_.type,
                        "type %d (%s) with these sizes cannot be a %s",
                        tensor_.type,
                        pavo_type_name(tensor_.type),
                        role_name(tensor_.role));
  }

  bool strides() {
    if (!has_strides()) {
      return true;
    }
    for (int32_t i = 0; i < tensor_.rank; ++i) {
      const bool last = i == tensor_.rank - 1;
      const int64_t stride = tensor_.stride[i];
      if (tensor_.shape[i] > 1 &&
          (stride < 0 || stride % 4 != 0 || stride > kMaxElements || (last && stride != 4))) {
        return refuse(
            verdict_,
            PAVO_REASON_STRIDE,
            operand_,
            i,
            4,
            stride,
            last ? "expected a dense last dimension (4 bytes), got %" PRId64
                 : "expected a stride that is a multiple of 4 bytes, got %" PRId64,
            stride);
      }
    }
    return true;
  }

  // Elements of an output that share bytes would be written twice.
  bool no_overlap() {
    if (!has_strides()) {
      return true;
    }
    // From the smallest stride to the largest, each must clear what lies inside it.
    std::array<bool, PAVO_MAX_RANK> done = {};
    int64_t end = 4;
    for (int32_t round = 0; round < tensor_.rank; ++round) {
      int32_t dimension = -1;
      for (int32_t i = 0; i < tensor_.rank; ++i) {
        if (!done[static_cast<size_t>(i)] &&
            (dimension < 0 || tensor_.stride[i] < tensor_.stride[dimension])) {
          dimension = i;
        }
      }
      done[static_cast<size_t>(dimension)] = true;
      const int64_t size = tensor_.shape[dimension];
      const int64_t stride = tensor_.stride[dimension];
      if (size <= 1) {
        continue;
      }
      if (stride < end) {
        return refuse(
            verdict_,
            PAVO_REASON_STRIDE,
            operand_,
            dimension,
            end,
            stride,
            "elements of the output overlap: expected at least %" PRId64 " bytes, got %" PRId64,
            end,
            stride);
      }
      if (__builtin_add_overflow(end, (size - 1) * stride, &end)) {
        return refuse(
            verdict_,
            PAVO_REASON_STRIDE,
            operand_,
            dimension,
            0,
            stride,
            "the tensor spans too many bytes");
      }
    }
    return true;
  }

 private:
  // 2^40 elements: far beyond any device, and no product of a few such numbers overflows.
  static constexpr int64_t kMaxElements = int64_t{1} << 40;

  bool has_strides() const {
    return tensor_.role == PAVO_ROLE_ACTIVATION || tensor_.role == PAVO_ROLE_STEP ||
           tensor_.role == PAVO_ROLE_STATE;
  }
  bool whole_blocks() const {
    return tensor_.rank == 0 ||
           pavo_type_row_bytes(tensor_.type, tensor_.shape[tensor_.rank - 1]) >= 0;
  }

  const pavo_tensor& tensor_;
  int32_t operand_;
  pavo_verdict* verdict_;
};

bool check_arity(const NodeQuery& query, const Arity& arity, pavo_verdict* verdict) {
  const uint32_t inputs = query.node.input_count;
  const uint32_t outputs = query.node.output_count;
  if (inputs < arity.inputs_min || inputs > arity.inputs_max) {
    return refuse(
        verdict,
        PAVO_REASON_OPERAND,
        -1,
        -1,
        arity.inputs_min,
        inputs,
        "expected %u to %u inputs, got %u",
        arity.inputs_min,
        arity.inputs_max,
        inputs);
  }
  if (outputs < arity.outputs_min || outputs > arity.outputs_max) {
    return refuse(
        verdict,
        PAVO_REASON_OPERAND,
        -1,
        -1,
        arity.outputs_min,
        outputs,
        "expected %u to %u outputs, got %u",
        arity.outputs_min,
        arity.outputs_max,
        outputs);
  }
  return true;
}

bool check_index(
    const NodeQuery& query, uint32_t operand, const Arity& arity, pavo_verdict* verdict) {
  const bool is_input = operand < query.node.input_count;
  const uint32_t position = is_input ? operand : operand - query.node.input_count;
  const uint32_t index = is_input ? query.node.inputs[position] : query.node.outputs[position];
  const auto number = static_cast<int32_t>(operand);
  if (index == PAVO_NO_TENSOR) {
    // Inputs before the last may be optional; which ones an op needs, its predicate knows.
    return is_input || position >= arity.outputs_min ||
           refuse(verdict, PAVO_REASON_OPERAND, number, -1, 1, 0, "output %u is missing", position);
  }
  return index < query.graph.tensor_count || refuse(
                                                 verdict,
                                                 PAVO_REASON_OPERAND,
                                                 number,
                                                 -1,
                                                 query.graph.tensor_count,
                                                 index,
                                                 "tensor index %u, but the graph has %u tensors",
                                                 index,
                                                 query.graph.tensor_count);
}

}  // namespace

bool check_node(const NodeQuery& query, pavo_verdict* verdict) {
  const auto* arity = std::find_if(std::begin(kArities), std::end(kArities), [&](const Arity& a) {
    return a.op == query.node.op;
  });
  if (arity == std::end(kArities)) {
    return refuse(
        verdict,
        PAVO_REASON_OP,
        -1,
        -1,
        0,
        query.node.op,
        "op %d is not known here",
        query.node.op);
  }
  if (!check_arity(query, *arity, verdict)) {
    return false;
  }
  const Checker checker(query, verdict);
  for (uint32_t i = 0; i < query.node.input_count + query.node.output_count; ++i) {
    if (!check_index(query, i, *arity, verdict)) {
      return false;
    }
    const uint32_t inputs = query.node.input_count;
    const pavo_tensor* tensor = checker.operand(i < inputs ? i : Checker::output(i - inputs));
    if (tensor == nullptr) {
      continue;
    }
    OperandCheck check(*tensor, static_cast<int32_t>(i), verdict);
    if (!check.shape() || !check.type() || !check.strides() ||
        (i >= inputs && !check.no_overlap())) {
      return false;
    }
  }
  return true;
}

const pavo_tensor* Checker::operand(uint32_t index) const {
  return index < kFirstOutput ? query_.input(index) : query_.output(index - kFirstOutput);
}

bool Checker::present(uint32_t index) {
  return operand(index) != nullptr || refuse(
                                          verdict_,
                                          PAVO_REASON_OPERAND,
                                          number(index),
                                          -1,
                                          1,
                                          0,
                                          "operand %d is missing",
                                          number(index));
}

bool Checker::rank(uint32_t index, int32_t rank) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || tensor->rank == rank ||
         refuse(
             verdict_,
             PAVO_REASON_SHAPE_MISMATCH,
             number(index),
             -1,
             rank,
             tensor->rank,
             "expected rank %d, got %d",
             rank,
             tensor->rank);
}

bool Checker::rank_at_least(uint32_t index, int32_t rank) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || tensor->rank >= rank ||
         refuse(
             verdict_,
             PAVO_REASON_SHAPE_MISMATCH,
             number(index),
             -1,
             rank,
             tensor->rank,
             "expected at least rank %d, got %d",
             rank,
             tensor->rank);
}

bool Checker::dim(uint32_t index, int32_t dimension, int64_t expected, const char* what) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || tensor->shape[dimension] == expected ||
         refuse(
             verdict_,
             PAVO_REASON_SHAPE_MISMATCH,
             number(index),
             dimension,
             expected,
             tensor->shape[dimension],
             "expected dimension %d to be %" PRId64 " (%s), got %" PRId64,
             dimension,
             expected,
             what,
             tensor->shape[dimension]);
}

bool Checker::dim_range(uint32_t index, int32_t dimension, int64_t least, int64_t most) {
  const pavo_tensor* tensor = operand(index);
  if (tensor == nullptr) {
    return true;
  }
  const int64_t size = tensor->shape[dimension];
  return (size >= least && size <= most) ||
         refuse(
             verdict_,
             PAVO_REASON_SHAPE_RANGE,
             number(index),
             dimension,
             size < least ? least : most,
             size,
             "expected dimension %d in %" PRId64 "..%" PRId64 ", got %" PRId64,
             dimension,
             least,
             most,
             size);
}

bool Checker::dim_multiple(uint32_t index, int32_t dimension, int64_t multiple) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || tensor->shape[dimension] % multiple == 0 ||
         refuse(
             verdict_,
             PAVO_REASON_SHAPE_MULTIPLE,
             number(index),
             dimension,
             multiple,
             tensor->shape[dimension],
             "expected dimension %d to be a multiple of %" PRId64 ", got %" PRId64,
             dimension,
             multiple,
             tensor->shape[dimension]);
}

bool Checker::same_shape(uint32_t index, uint32_t other) {
  const pavo_tensor* tensor = operand(index);
  const pavo_tensor* model = operand(other);
  if (tensor == nullptr || model == nullptr) {
    return true;
  }
  if (!rank(index, model->rank)) {
    return false;
  }
  for (int32_t i = 0; i < model->rank; ++i) {
    if (!dim(index, i, model->shape[i], "as the first operand")) {
      return false;
    }
  }
  return true;
}

bool Checker::role(uint32_t index, std::initializer_list<int32_t> roles) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || std::find(roles.begin(), roles.end(), tensor->role) != roles.end() ||
         refuse(
             verdict_,
             PAVO_REASON_ROLE,
             number(index),
             -1,
             *roles.begin(),
             tensor->role,
             "expected a tensor of role %s, got %s",
             role_name(*roles.begin()),
             role_name(tensor->role));
}

bool Checker::type(uint32_t index, std::initializer_list<int32_t> types) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || std::find(types.begin(), types.end(), tensor->type) != types.end() ||
         refuse(
             verdict_,
             PAVO_REASON_TYPE,
             number(index),
             -1,
             *types.begin(),
             tensor->type,
             "expected type %s, got %s",
             pavo_type_name(*types.begin()),
             pavo_type_name(tensor->type));
}

bool Checker::activations(std::initializer_list<uint32_t> operands) {
  return std::all_of(operands.begin(), operands.end(), [this](uint32_t index) {
    return role(index, {PAVO_ROLE_ACTIVATION}) && type(index, {PAVO_TYPE_F32});
  });
}

bool Checker::indices(std::initializer_list<uint32_t> operands) {
  return std::all_of(operands.begin(), operands.end(), [this](uint32_t index) {
    return role(index, {PAVO_ROLE_STEP, PAVO_ROLE_ACTIVATION}) && type(index, {PAVO_TYPE_I32});
  });
}

bool Checker::dense_weight(uint32_t index, int64_t count) {
  const pavo_tensor* tensor = operand(index);
  if (tensor == nullptr) {
    return true;
  }
  if (!role(index, {PAVO_ROLE_WEIGHT}) || !rank(index, 1) ||
      !dim(index, 0, count, "values of the rows") ||
      !type(index, {PAVO_TYPE_F32, PAVO_TYPE_F16, PAVO_TYPE_BF16})) {
    return false;
  }
  // Any other use would have packed it differently.
  return tensor->uses == PAVO_USE_DENSE || refuse(
                                               verdict_,
                                               PAVO_REASON_OPERAND,
                                               number(index),
                                               -1,
                                               PAVO_USE_DENSE,
                                               tensor->uses,
                                               "expected a weight of dense use only, got uses %u",
                                               tensor->uses);
}

bool Checker::uniform_rows(uint32_t index) {
  const pavo_tensor* tensor = operand(index);
  return tensor == nullptr || row_map(*tensor).uniform() ||
         refuse(
             verdict_,
             PAVO_REASON_STRIDE,
             number(index),
             0,
             0,
             tensor->stride[0],
             "expected rows at one distance");
}

bool Checker::param_range(
    size_t offset, const char* name, int64_t value, int64_t least, int64_t most) {
  return (value >= least && value <= most) ||
         refuse(
             verdict_,
             PAVO_REASON_PARAM,
             -1,
             static_cast<int32_t>(offset),
             least,
             value,
             "expected %s in %" PRId64 "..%" PRId64 ", got %" PRId64,
             name,
             least,
             most,
             value);
}

bool Checker::param_finite(size_t offset, const char* name, double value) {
  return std::isfinite(value) || refuse(
                                     verdict_,
                                     PAVO_REASON_PARAM,
                                     -1,
                                     static_cast<int32_t>(offset),
                                     0,
                                     0,
                                     "expected a finite %s, got %g",
                                     name,
                                     value);
}

bool Checker::shared_bytes(int64_t needed) {
  return needed <= query_.caps.shared_bytes_per_block ||
         refuse(
             verdict_,
             PAVO_REASON_DEVICE_FEATURE,
             -1,
             -1,
             query_.caps.shared_bytes_per_block,
             needed,
             "needs %" PRId64 " bytes of shared memory a block, the chip has %" PRId64,
             needed,
             query_.caps.shared_bytes_per_block);
}

int64_t tensor_bytes(const pavo_tensor& tensor) {
  const int64_t count = sdk::element_count(tensor);
  if (tensor.role == PAVO_ROLE_KV_POOL) {
    return 0;
  }
  if (tensor.role != PAVO_ROLE_WEIGHT || tensor.uses == PAVO_USE_DENSE || tensor.rank == 0) {
    return 4 * count;
  }
  const int64_t columns = tensor.shape[tensor.rank - 1];
  if (columns == 0 || block_parts(tensor.type).block_values == 0) {
    return 0;
  }
  return count / columns * weight_layout(tensor.type, columns).row_bytes;
}

int64_t operand_bytes(const NodeQuery& query) {
  int64_t bytes = 0;
  for (uint32_t i = 0; i < query.node.input_count; ++i) {
    bytes += query.input(i) == nullptr ? 0 : tensor_bytes(*query.input(i));
  }
  for (uint32_t i = 0; i < query.node.output_count; ++i) {
    bytes += query.output(i) == nullptr ? 0 : tensor_bytes(*query.output(i));
  }
  return bytes;
}

}  // namespace pavo::cuda
