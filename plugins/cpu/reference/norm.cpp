// norm: s = x (+ residual); y = normalise(s) * (weight + weight_offset) + bias.
#include <algorithm>
#include <cmath>

#include "plugins/cpu/reference/reference.h"

namespace pavo::cpu {
namespace {

using namespace reference;

struct NormReference {
  static constexpr const char* kName = kReferenceName;
  static constexpr int32_t kOp = pavo_op_norm;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    const uint32_t y = check.output(0);
    const uint32_t sum = check.output(1);
    if (!check.present(0) || !check.rank_at_least(0, 1) || !check.activations({0, 3, y, sum}) ||
        !check.same_shape(3, 0) || !check.same_shape(y, 0) || !check.same_shape(sum, 0)) {
      return false;
    }
    const int64_t length = row_length(*query.input(0));
    const auto& params = query.params<pavo_norm_params>();
    return check.dense_weight(1, length) && check.dense_weight(2, length) &&
           check.param_range(
               offsetof(pavo_norm_params, kind),
               "kind",
               params.kind,
               PAVO_NORM_RMS,
               PAVO_NORM_L2) &&
           check.param_at_least(offsetof(pavo_norm_params, eps), "eps", params.eps, 0) &&
           check.param_finite(
               offsetof(pavo_norm_params, weight_offset), "weight_offset", params.weight_offset);
  }

  // Decoded weight and bias.
  static int64_t workspace_bytes(const NodeQuery& query) {
    return 2 * row_length(*query.input(0)) * static_cast<int64_t>(sizeof(float));
  }

  static Cost cost(const NodeQuery& query) {
    return {operand_bytes(query), 8 * values(*query.input(0))};
  }

  // What the row is multiplied with, and what is subtracted before.
  struct Scale {
    double factor;
    double mean;
  };

  static Scale row_scale(
      const pavo_norm_params& params, const float* x, const float* residual, int64_t length) {
    const auto value = [&](int64_t i) {
      return static_cast<double>(x[i]) +
             (residual != nullptr ? static_cast<double>(residual[i]) : 0.0);
    };
    double mean = 0;
    if (params.kind == PAVO_NORM_LAYER) {
      for (int64_t i = 0; i < length; ++i) {
        mean += value(i) / static_cast<double>(length);
      }
    }
    double squares = 0;
    for (int64_t i = 0; i < length; ++i) {
      squares += (value(i) - mean) * (value(i) - mean);
    }
    const auto eps = static_cast<double>(params.eps);
    if (params.kind == PAVO_NORM_L2) {
      return {1 / std::max(std::sqrt(squares), eps), 0};
    }
    return {1 / std::sqrt(squares / static_cast<double>(length) + eps), mean};
  }

  static int32_t launch(const KernelArgs& args, pavo_error* /*error*/) {
    const Operand x = args.input(0);
    const Operand residual = args.input(3);
    const Operand y = args.output(0);
    const Operand sum = args.output(1);
    const int64_t length = row_length(*x.tensor);
    const auto& params = args.params<pavo_norm_params>();
    auto* scratch = reinterpret_cast<float*>(args.workspace);
    const float* weight = dense(args.input(1), scratch);
    const float* bias = dense(args.input(2), scratch + length);
    for (int64_t r = 0; r < row_count(*x.tensor); ++r) {
      const float* values = row(x, r);
      const float* added = residual ? row(residual, r) : nullptr;
      const Scale scale = row_scale(params, values, added, length);
      for (int64_t i = 0; i < length; ++i) {
        const double s = static_cast<double>(values[i]) +
                         (added != nullptr ? static_cast<double>(added[i]) : 0.0);
        const double w = (weight != nullptr ? static_cast<double>(weight[i]) : 1.0) +
                         static_cast<double>(params.weight_offset);
        const double b = bias != nullptr ? static_cast<double>(bias[i]) : 0.0;
        row(y, r)[i] = static_cast<float>((s - scale.mean) * scale.factor * w + b);
        if (sum) {
          row(sum, r)[i] = static_cast<float>(s);
        }
      }
    }
    return PAVO_OK;
  }
};

}  // namespace

const Reference& norm_reference() {
  static constexpr Reference kReference = reference_entry<NormReference>();
  return kReference;
}

}  // namespace pavo::cpu
