// glu: out = act(gate) * up.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "plugins/cpu/reference/reference.h"

namespace pavo::cpu {
namespace {

using namespace reference;

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double glu(const pavo_glu_params& params, double gate, double up) {
  const double limit = params.limit;
  switch (params.kind) {
    case PAVO_GLU_SILU:
      return gate * sigmoid(gate) * up;
    case PAVO_GLU_GELU_TANH: {
      const double root = std::sqrt(2 / std::numbers::pi);
      return gate / 2 * (1 + std::tanh(root * (gate + 0.044715 * gate * gate * gate))) * up;
    }
    case PAVO_GLU_GELU_ERF:
      return gate / 2 * (1 + std::erf(gate / std::numbers::sqrt2)) * up;
    default: {
      const double clamped = std::min(gate, limit);
      return clamped * sigmoid(static_cast<double>(params.alpha) * clamped) *
             (std::clamp(up, -limit, limit) + 1);
    }
  }
}

struct GluReference {
  static constexpr const char* kName = kReferenceName;
  static constexpr int32_t kOp = pavo_op_glu;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    const uint32_t out = check.output(0);
    if (!check.present(0) || !check.rank_at_least(0, 1) || !check.activations({0, 1, out})) {
      return false;
    }
    const pavo_tensor& gate = *query.input(0);
    const bool packed = query.input(1) == nullptr;  // gate and up in one tensor
    if (packed && !check.rank(out, gate.rank)) {
      return false;
    }
    if (packed) {
      const int32_t last = gate.rank - 1;
      for (int32_t i = 0; i < last; ++i) {
        if (!check.dim(out, i, gate.shape[i], "as gate")) {
          return false;
        }
      }
      if (!check.dim(0, last, 2 * query.output(0)->shape[last], "gate and up")) {
        return false;
      }
    } else if (!check.same_shape(1, 0) || !check.same_shape(out, 0)) {
      return false;
    }
    return check_params(query.params<pavo_glu_params>(), &check);
  }

  static bool check_params(const pavo_glu_params& params, Checker* check) {
    if (!check->param_range(
            offsetof(pavo_glu_params, kind),
            "kind",
            params.kind,
            PAVO_GLU_SILU,
            PAVO_GLU_CLAMPED)) {
      return false;
    }
    return params.kind != PAVO_GLU_CLAMPED ||
           (check->param_finite(offsetof(pavo_glu_params, alpha), "alpha", params.alpha) &&
            check->param_at_least(offsetof(pavo_glu_params, limit), "limit", params.limit, 0));
  }

  static int64_t workspace_bytes(const NodeQuery& /*query*/) { return 0; }

  static Cost cost(const NodeQuery& query) {
    return {operand_bytes(query), 16 * values(*query.output(0))};
  }

  static int32_t launch(const KernelArgs& args, pavo_error* /*error*/) {
    const Operand gate = args.input(0);
    const Operand up = args.input(1);
    const Operand out = args.output(0);
    const auto& params = args.params<pavo_glu_params>();
    const int64_t length = row_length(*out.tensor);
    for (int64_t r = 0; r < row_count(*out.tensor); ++r) {
      const float* gates = row(gate, r);
      const float* ups = up ? row(up, r) : gates + length;
      for (int64_t i = 0; i < length; ++i) {
        row(out, r)[i] = static_cast<float>(
            glu(params, static_cast<double>(gates[i]), static_cast<double>(ups[i])));
      }
    }
    return PAVO_OK;
  }
};

}  // namespace

const Reference& glu_reference() {
  static constexpr Reference kReference = reference_entry<GluReference>();
  return kReference;
}

}  // namespace pavo::cpu
