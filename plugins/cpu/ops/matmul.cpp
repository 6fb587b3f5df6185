// The fast matmul kernels: which nodes they take, and their place in the workspace.
#include <cstddef>
#include <cstdint>

#include "plugins/cpu/checker.h"
#include "plugins/cpu/dequantize.h"
#include "plugins/cpu/kernel.h"
#include "plugins/cpu/ops/matmul_problem.h"
#include "plugins/cpu/tensor_view.h"

namespace pavo::cpu {
namespace {

constexpr int64_t kAlignment = 64;

// Bytes at the start of the workspace for a bias as f32.
int64_t bias_bytes(int64_t rows) {
  return pavo_align_up(rows * static_cast<int64_t>(sizeof(float)), kAlignment);
}

// What both kernels ask for; within these dimensions no workspace size overflows.
bool check_common(const NodeQuery& query, const MatmulFunctions& functions, pavo_verdict* verdict) {
  if (!functions) {
    return sdk::refuse(
        verdict,
        PAVO_REASON_DEVICE_FEATURE,
        -1,
        -1,
        0,
        0,
        "expected a processor with SSE4, AVX2 or AVX-512, got none of them");
  }
  Checker check(query, verdict);
  return check.dim_at_most(0, 0, INT32_MAX) && check.dim_at_most(1, 0, INT32_MAX) &&
         check.dim_at_most(1, 1, INT32_MAX);
}

int64_t workspace_for(const NodeQuery& query, const MatmulFunctions& functions) {
  if (!functions) {
    return 0;
  }
  const pavo_tensor& w = *query.input(1);
  return bias_bytes(w.shape[0]) +
         functions.workspace_bytes(query.input(0)->shape[0], w.shape[1], query.options.threads);
}

int32_t run(const KernelArgs& args, const MatmulFunctions& functions, pavo_error* error) {
  if (!functions) {
    return sdk::fail(
        error,
        PAVO_ERROR_NODE_FAILED,
        "matmul: the option simd of another instance took away the instruction set that this plan "
        "was made for; create instances with the same value");
  }
  const Operand x = args.input(0);
  const Operand w = args.input(1);
  const Operand bias = args.input(2);
  const Operand out = args.output(0);
  constexpr auto kFloat = static_cast<int64_t>(sizeof(float));
  MatmulProblem problem = {};
  problem.weight_type = w.tensor->type;
  problem.tokens = x.dim(0);
  problem.rows = w.dim(0);
  problem.columns = w.dim(1);
  problem.x = x.as<const float>();
  problem.x_stride = uniform_pitch(*x.tensor) / kFloat;
  problem.w = w.data;
  problem.out = out.as<float>();
  problem.out_stride = uniform_pitch(*out.tensor) / kFloat;
  problem.workspace = args.workspace + bias_bytes(problem.rows);
  if (bias) {
    auto* values = reinterpret_cast<float*>(args.workspace);
    dequantize_row(bias.tensor->type, bias.data, problem.rows, values);
    problem.bias = values;
  }
  if (problem.tokens > 0 && problem.rows > 0) {
    functions.run(problem, args.pool);
  }
  return PAVO_OK;
}

// Int8 activations against the blocks of quantised weights.
struct MatmulQ8dot {
  static constexpr const char* kName = "matmul_q8dot";
  static constexpr int32_t kOp = pavo_op_matmul;
  static constexpr int32_t kDecision = PAVO_ACCEPT;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    return check_common(query, matmul_q8dot_functions(), verdict) &&
           check.type(
               1,
               {PAVO_TYPE_Q4_0, PAVO_TYPE_Q4_1, PAVO_TYPE_Q8_0, PAVO_TYPE_Q4_K, PAVO_TYPE_Q6_K}) &&
           check.param_range(
               offsetof(pavo_matmul_params, precision),
               "precision",
               query.params<pavo_matmul_params>().precision,
               PAVO_PRECISION_DEFAULT,
               PAVO_PRECISION_DEFAULT);
  }

  static int64_t workspace_bytes(const NodeQuery& query) {
    return workspace_for(query, matmul_q8dot_functions());
  }

  static int32_t launch(const KernelArgs& args, pavo_error* error) {
    return run(args, matmul_q8dot_functions(), error);
  }
};

// F32 activations against weights of any type.
struct MatmulF32 {
  static constexpr const char* kName = "matmul_f32";
  static constexpr int32_t kOp = pavo_op_matmul;
  static constexpr int32_t kDecision = PAVO_ACCEPT;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    return check_common(query, matmul_f32_functions(), verdict);
  }

  static int64_t workspace_bytes(const NodeQuery& query) {
    return workspace_for(query, matmul_f32_functions());
  }

  static int32_t launch(const KernelArgs& args, pavo_error* error) {
    return run(args, matmul_f32_functions(), error);
  }
};

}  // namespace

std::span<const Kernel> matmul_kernels() {
  static constexpr Kernel kKernels[] = {entry<MatmulQ8dot>(), entry<MatmulF32>()};
  return kKernels;
}

}  // namespace pavo::cpu
