// glu: out = act(gate) * up, element by element.
//
//   silu       gate / (1 + exp(-gate)) * up
//   gelu_tanh  gate / (1 + exp(-2 u)) * up, u = sqrt(2 / pi) * (gate + 0.044715 gate^3): the usual
//              form with tanh, without its cancellation
//   gelu_erf   gate / 2 * erfc(-gate / sqrt(2)) * up
//   clamped    g / (1 + exp(-alpha g)) * (clamp(up, -limit, limit) + 1), g = min(gate, limit)
//
// gate, up, out: f32 [..,N], rows anywhere; without up, gate is [..,2N] and its second half is up.
// An element depends on its own place alone, so out may lie exactly on gate or up.
#pragma once

#include "kernels/common/checks.h"
#include "kernels/common/entry.h"
#include "kernels/common/rows.h"
#include "kernels/common/vec.cuh"

namespace pavo::cuda {

struct GluData {
  const float* gate;
  const float* up;
  float* out;
  RowMap gate_rows, up_rows, out_rows;  // columns: those of out_rows count
  int32_t kind;
  float alpha;
  float limit;
};

inline GluData glu_data(const KernelArgs& args) {
  const auto& params = args.params<pavo_glu_params>();
  const Operand gate = args.input(0), up = args.input(1), out = args.output(0);
  GluData data{};
  data.gate = gate.as<float>();
  data.out = out.as<float>();
  data.gate_rows = row_map(*gate.tensor);
  data.out_rows = row_map(*out.tensor);
  data.up = up ? up.as<float>() : data.gate + data.out_rows.columns;
  data.up_rows = up ? row_map(*up.tensor) : data.gate_rows;
  data.kind = params.kind;
  data.alpha = params.alpha;
  data.limit = params.limit;
  return data;
}

// Comparisons are written so that NaN stays NaN.
__device__ __forceinline__ float glu_value(const GluData& data, float gate, float up) {
  switch (data.kind) {
    case PAVO_GLU_SILU:
      return gate / (1.0f + expf(-gate)) * up;
    case PAVO_GLU_GELU_TANH: {
      const float u = 0.7978845608f * fmaf(0.044715f * gate * gate, gate, gate);
      return gate / (1.0f + expf(-2.0f * u)) * up;
    }
    case PAVO_GLU_GELU_ERF:
      return 0.5f * gate * erfcf(-0.7071067812f * gate) * up;
    default: {
      const float g = gate > data.limit ? data.limit : gate;
      const float below = up > data.limit ? data.limit : up;
      const float clamped = below < -data.limit ? -data.limit : below;
      return g / (1.0f + expf(-data.alpha * g)) * (clamped + 1.0f);
    }
  }
}

// One thread an element, in steps of the grid.
template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    glu_generic_kernel(GluData data) {
  const int64_t columns = data.out_rows.columns;
  const int64_t count = data.out_rows.rows * columns;
  const int64_t step = int64_t{gridDim.x} * K::kThreads;
  for (int64_t i = int64_t{blockIdx.x} * K::kThreads + threadIdx.x; i < count; i += step) {
    const int64_t row = i / columns;
    const int64_t column = i % columns;
    const float gate = data.gate[data.gate_rows.offset(row) + column];
    const float up = data.up[data.up_rows.offset(row) + column];
    data.out[data.out_rows.offset(row) + column] = glu_value(data, gate, up);
  }
}

template <typename Arch>
struct GluGeneric {
  static constexpr const char* kName = "glu_generic";
  static constexpr int32_t kOp = pavo_op_glu;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 4;
  static constexpr int64_t kMaxBlocks = 4096;  // enough for any chip; the rest is the loop's

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    const auto& params = query.params<pavo_glu_params>();
    return supports_shapes(query, check) &&
           check.param_range(
               offsetof(pavo_glu_params, kind),
               "kind",
               params.kind,
               PAVO_GLU_SILU,
               PAVO_GLU_CLAMPED) &&
           check.param_finite(offsetof(pavo_glu_params, alpha), "alpha", params.alpha) &&
           check.param_finite(offsetof(pavo_glu_params, limit), "limit", params.limit);
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) {
    return {operand_bytes(query), 8.0 * static_cast<double>(sdk::element_count(*query.output(0)))};
  }
  static cudaError_t launch(const KernelArgs& args) {
    const GluData data = glu_data(args);
    const int64_t blocks = blocks_for(data.out_rows.rows * data.out_rows.columns, kThreads);
    return args.launcher.launch(
        kName,
        glu_generic_kernel<GluGeneric>,
        dim3(static_cast<uint32_t>(blocks < kMaxBlocks ? blocks : kMaxBlocks)),
        dim3(kThreads),
        0,
        data);
  }

 private:
  static bool supports_shapes(const NodeQuery& query, Checker& check) {
    const uint32_t out = check.output(0);
    if (!check.present(0) || !check.rank_at_least(0, 1) || !check.activations({0, 1, out})) {
      return false;
    }
    if (query.input(1) != nullptr) {
      return check.same_shape(1, 0) && check.same_shape(out, 0);
    }
    const pavo_tensor& gate = *query.input(0);
    const int32_t last = gate.rank - 1;
    if (!check.dim_multiple(0, last, 2) || !check.rank(out, gate.rank)) {
      return false;
    }
    for (int32_t i = 0; i < last; ++i) {
      if (!check.dim(out, i, gate.shape[i], "as gate")) {
        return false;
      }
    }
    return check.dim(out, last, gate.shape[last] / 2, "half of gate");
  }
};

// Vectors of four columns. Grid: x over a row, y over rows in steps.
template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm) glu_rows_kernel(GluData data) {
  const int64_t column = 4 * (int64_t{blockIdx.x} * K::kThreads + threadIdx.x);
  if (column >= data.out_rows.columns) {
    return;
  }
  for (int64_t row = blockIdx.y; row < data.out_rows.rows; row += gridDim.y) {
    const float4 gate = load4(data.gate + data.gate_rows.offset(row) + column);
    const float4 up = load4(data.up + data.up_rows.offset(row) + column);
    store4(data.out + data.out_rows.offset(row) + column, map4(gate, up, [&](float g, float u) {
             return glu_value(data, g, u);
           }));
  }
}

template <typename Arch>
struct GluRows {
  static constexpr const char* kName = "glu_rows";
  static constexpr int32_t kOp = pavo_op_glu;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocksPerSm = 8;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    if (!GluGeneric<Arch>::supports(query, verdict)) {
      return false;
    }
    const uint32_t out = check.output(0);
    const int32_t last = query.output(0)->rank - 1;
    return check.dim_range(out, last, 4, 4 * kThreads * int64_t{kMaxGridX}) &&
           check.dim_multiple(out, last, 4);
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) { return GluGeneric<Arch>::cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const GluData data = glu_data(args);
    if (!aligned16(data.gate, data.up, data.out) || !rows_aligned16(data.gate_rows) ||
        !rows_aligned16(data.up_rows) || !rows_aligned16(data.out_rows)) {
      return GluGeneric<Arch>::launch(args);
    }
    const int64_t rows = data.out_rows.rows;
    return args.launcher.launch(
        kName,
        glu_rows_kernel<GluRows>,
        dim3(
            static_cast<uint32_t>(blocks_for(data.out_rows.columns, 4 * kThreads)),
            static_cast<uint32_t>(rows < kMaxGridYz ? rows : kMaxGridYz)),
        dim3(kThreads),
        0,
        data);
  }
};

template <typename Arch>
KernelList glu_kernels() {
  static constexpr Kernel kKernels[] = {
      entry<GluRows<Arch>, Arch>(), entry<GluGeneric<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
