// matmul: out[t,n] = sum_k x[t,k] * w[n,k] (+ bias[n]).
#include "plugins/cpu/reference/reference.h"

namespace pavo::cpu {
namespace {

using namespace reference;

struct MatmulReference {
  static constexpr const char* kName = kReferenceName;
  static constexpr int32_t kOp = pavo_op_matmul;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    const uint32_t out = check.output(0);
    if (!check.present(0) || !check.present(1) || !check.rank(0, 2) || !check.rank(1, 2) ||
        !check.rank(out, 2) || !check.activations({0, out}) || !check.role(1, {PAVO_ROLE_WEIGHT}) ||
        !check.dequantizable(1)) {
      return false;
    }
    const pavo_tensor& x = *query.input(0);
    const pavo_tensor& w = *query.input(1);
    return check.dim(1, 1, x.shape[1], "K of x") && check.dense_weight(2, w.shape[0]) &&
           check.dim(out, 0, x.shape[0], "T of x") && check.dim(out, 1, w.shape[0], "N of w") &&
           check.param_range(
               offsetof(pavo_matmul_params, precision),
               "precision",
               query.params<pavo_matmul_params>().precision,
               PAVO_PRECISION_DEFAULT,
               PAVO_PRECISION_EXACT);
  }

  // Per thread one decoded row of w; after these the bias.
  static int64_t workspace_bytes(const NodeQuery& query) {
    const pavo_tensor& w = *query.input(1);
    return (query.options.threads * w.shape[1] + w.shape[0]) * static_cast<int64_t>(sizeof(float));
  }

  static Cost cost(const NodeQuery& query) {
    return {
        operand_bytes(query),
        2 * values(*query.input(1)) * static_cast<double>(query.input(0)->shape[0])};
  }

  static int32_t launch(const KernelArgs& args, pavo_error* /*error*/) {
    const Operand x = args.input(0);
    const Operand w = args.input(1);
    const Operand out = args.output(0);
    const int64_t depth = w.dim(1);
    auto* scratch = reinterpret_cast<float*>(args.workspace);
    const float* bias = dense(args.input(2), scratch + args.pool.threads() * depth);
    args.pool.parallel_for(w.dim(0), 1, [&](int64_t begin, int64_t end, int32_t thread) {
      float* weights = scratch + thread * depth;
      for (int64_t n = begin; n < end; ++n) {
        dequantize_row(w.tensor->type, w.data + row_offset(*w.tensor, n), depth, weights);
        for (int64_t t = 0; t < x.dim(0); ++t) {
          const float* values = row(x, t);
          double sum = bias != nullptr ? static_cast<double>(bias[n]) : 0.0;
          for (int64_t k = 0; k < depth; ++k) {
            sum += static_cast<double>(values[k]) * static_cast<double>(weights[k]);
          }
          row(out, t)[n] = static_cast<float>(sum);
        }
      }
    });
    return PAVO_OK;
  }
};

}  // namespace

const Reference& matmul_reference() {
  static constexpr Reference kReference = reference_entry<MatmulReference>();
  return kReference;
}

}  // namespace pavo::cpu
