// binary: out = a (kind) b, b broadcast to a's shape.
#include "plugins/cpu/reference/reference.h"

namespace pavo::cpu {
namespace {

using namespace reference;

double apply(int32_t kind, double a, double b) {
  switch (kind) {
    case PAVO_BINARY_ADD:
      return a + b;
    case PAVO_BINARY_SUB:
      return a - b;
    default:
      return a * b;
  }
}

struct BinaryReference {
  static constexpr const char* kName = kReferenceName;
  static constexpr int32_t kOp = pavo_op_binary;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    const uint32_t out = check.output(0);
    if (!check.present(0) || !check.present(1) || !check.rank_at_least(0, 1) ||
        !check.rank_at_least(1, 1) || !check.activations({0, out}) || !check.same_shape(out, 0) ||
        !check.role(1, {PAVO_ROLE_ACTIVATION, PAVO_ROLE_WEIGHT}) || !check.dequantizable(1)) {
      return false;
    }
    const pavo_tensor& a = *query.input(0);
    const pavo_tensor& b = *query.input(1);
    if (b.rank > a.rank && !check.rank(1, a.rank)) {
      return false;
    }
    for (int32_t i = 0; i < b.rank; ++i) {
      if (b.shape[i] != 1 && !check.dim(1, i, a.shape[a.rank - b.rank + i], "as a, or 1")) {
        return false;
      }
    }
    return check.param_range(
        offsetof(pavo_binary_params, kind),
        "kind",
        query.params<pavo_binary_params>().kind,
        PAVO_BINARY_ADD,
        PAVO_BINARY_MUL);
  }

  // One decoded row of b.
  static int64_t workspace_bytes(const NodeQuery& query) {
    return row_length(*query.input(1)) * static_cast<int64_t>(sizeof(float));
  }

  static Cost cost(const NodeQuery& query) {
    return {operand_bytes(query), values(*query.input(0))};
  }

  static int32_t launch(const KernelArgs& args, pavo_error* /*error*/) {
    const Operand a = args.input(0);
    const Operand b = args.input(1);
    const Operand out = args.output(0);
    const int32_t kind = args.params<pavo_binary_params>().kind;
    const int64_t b_length = row_length(*b.tensor);
    auto* b_values = reinterpret_cast<float*>(args.workspace);
    for (int64_t r = 0; r < row_count(*a.tensor); ++r) {
      const int64_t b_row = broadcast_row(*a.tensor, *b.tensor, r);
      dequantize_row(b.tensor->type, b.data + row_offset(*b.tensor, b_row), b_length, b_values);
      for (int64_t i = 0; i < row_length(*a.tensor); ++i) {
        const auto right = static_cast<double>(b_values[b_length == 1 ? 0 : i]);
        row(out, r)[i] = static_cast<float>(apply(kind, static_cast<double>(row(a, r)[i]), right));
      }
    }
    return PAVO_OK;
  }
};

}  // namespace

const Reference& binary_reference() {
  static constexpr Reference kReference = reference_entry<BinaryReference>();
  return kReference;
}

}  // namespace pavo::cpu
