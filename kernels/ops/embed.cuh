// embed: out[t,:] = table[ids[t],:]; an id outside of 0..V-1 gives a row of zeros.
//
// table: packed weight [V,N] of any type, or f32 activation [V,N], rows anywhere; ids: i32 [T];
// out: f32 [T,N], rows anywhere. Weights: one thread decodes one slice (weight_slices.cuh) of one
// row. Activations: one thread an element. Each value is rounded at most once.
#pragma once

#include "kernels/common/checks.h"
#include "kernels/common/entry.h"
#include "kernels/common/rows.h"
#include "kernels/common/vec.cuh"
#include "kernels/common/weight_slices.cuh"

namespace pavo::cuda {

constexpr int64_t kEmbedMaxBlocks = 4096;  // enough for any chip; the rest is the kernel's loop

struct EmbedData {
  const std::byte* table;
  const int32_t* ids;
  float* out;
  RowMap table_rows;    // of an activation
  WeightLayout layout;  // of a weight
  RowMap out_rows;
  int64_t table_size;  // V
  bool vector_out;     // rows of out may be written in vectors
};

inline EmbedData embed_data(const KernelArgs& args) {
  const Operand table = args.input(0), ids = args.input(1), out = args.output(0);
  EmbedData data{};
  data.table = table.data;
  data.ids = ids.as<int32_t>();
  data.out = out.as<float>();
  if (table.tensor->role == PAVO_ROLE_WEIGHT) {
    data.layout = weight_layout(table.tensor->type, table.dim(1));
  } else {
    data.table_rows = row_map(*table.tensor);
  }
  data.out_rows = row_map(*out.tensor);
  data.table_size = table.dim(0);
  data.vector_out = aligned16(data.out) && rows_aligned16(data.out_rows);
  return data;
}

inline bool embed_supports(const NodeQuery& query, pavo_verdict* verdict) {
  Checker check(query, verdict);
  const uint32_t out = check.output(0);
  if (!check.present(0) || !check.present(1) || !check.rank(0, 2) || !check.indices({1}) ||
      !check.rank(1, 1) || !check.activations({out}) || !check.rank(out, 2)) {
    return false;
  }
  return check.dim(out, 0, query.input(1)->shape[0], "count of ids") &&
         check.dim(out, 1, query.input(0)->shape[1], "columns of the table");
}

inline Cost embed_cost(const NodeQuery& query) {
  const pavo_tensor& table = *query.input(0);
  const int64_t ids = query.input(1)->shape[0];
  const int64_t row_bytes = table.role == PAVO_ROLE_WEIGHT && table.shape[1] > 0
                                ? weight_layout(table.type, table.shape[1]).row_bytes
                                : 4 * table.shape[1];
  return {
      ids * row_bytes + tensor_bytes(*query.input(1)) + tensor_bytes(*query.output(0)),
      static_cast<double>(sdk::element_count(*query.output(0)))};
}

// Four values from `column` on, as many of them as there are.
__device__ __forceinline__ void embed_store(
    const EmbedData& data, float* row, int64_t column, float4 values) {
  if (data.vector_out && column + 4 <= data.out_rows.columns) {
    store4(row + column, values);
    return;
  }
  const float parts[4] = {values.x, values.y, values.z, values.w};
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (column + i < data.out_rows.columns) {
      row[column + i] = parts[i];
    }
  }
}

template <typename K, int32_t kType>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    embed_packed_kernel(EmbedData data) {
  using Slice = WeightSlice<kType>;
  const int64_t slices = slice_count<Slice>(data.out_rows.columns);
  const int64_t count = data.out_rows.rows * slices;
  const int64_t step = int64_t{gridDim.x} * K::kThreads;
  for (int64_t i = int64_t{blockIdx.x} * K::kThreads + threadIdx.x; i < count; i += step) {
    const int64_t token = i / slices;
    const int64_t slice_index = i % slices;
    const int32_t id = data.ids[token];
    const bool valid = id >= 0 && id < data.table_size;
    Slice slice{};
    if (valid) {
      slice.template load<typename K::Chip>(
          data.table + id * data.layout.row_bytes, data.layout, slice_index);
    }
    float* out = data.out + data.out_rows.offset(token);
#pragma unroll
    for (int run = 0; run < Slice::kRuns; ++run) {
      const int64_t start = Slice::run_start(slice_index, run);
#pragma unroll
      for (int quad = 0; quad < Slice::kRunValues / 4; ++quad) {
        const float4 values = slice_values(slice, run, quad);
        embed_store(data, out, start + 4 * quad, valid ? values : float4{});
      }
    }
  }
}

template <typename Arch>
struct EmbedPacked {
  using Chip = Arch;
  static constexpr const char* kName = "embed_packed";
  static constexpr int32_t kOp = pavo_op_embed;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocksPerSm = 8;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    if (!embed_supports(query, verdict) || !check.role(0, {PAVO_ROLE_WEIGHT})) {
      return false;
    }
    const pavo_tensor& table = *query.input(0);
    if (!contains(WeightTypes{}, table.type)) {
      return check.type(0, {PAVO_TYPE_F32});
    }
    // Dense weights are not packed.
    return (table.uses & PAVO_USE_DENSE) == 0 ||
           sdk::refuse(
               verdict,
               PAVO_REASON_OPERAND,
               0,
               -1,
               PAVO_USE_GATHER,
               table.uses,
               "expected a weight without dense use, got uses %u",
               table.uses);
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) { return embed_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const EmbedData data = embed_data(args);
    cudaError_t error = cudaSuccess;
    for_type(WeightTypes{}, args.input(0).tensor->type, [&](auto type) {
      constexpr int32_t kType = decltype(type)::value;
      const int64_t units =
          data.out_rows.rows * slice_count<WeightSlice<kType>>(data.out_rows.columns);
      const int64_t blocks = blocks_for(units, kThreads);
      error = args.launcher.launch(
          kName,
          embed_packed_kernel<EmbedPacked, kType>,
          dim3(static_cast<uint32_t>(blocks < kEmbedMaxBlocks ? blocks : kEmbedMaxBlocks)),
          dim3(kThreads),
          0,
          data);
    });
    return error;
  }
};

template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    embed_gather_kernel(EmbedData data) {
  const int64_t columns = data.out_rows.columns;
  const int64_t count = data.out_rows.rows * columns;
  const int64_t step = int64_t{gridDim.x} * K::kThreads;
  const auto* table = reinterpret_cast<const float*>(data.table);
  for (int64_t i = int64_t{blockIdx.x} * K::kThreads + threadIdx.x; i < count; i += step) {
    const int64_t token = i / columns;
    const int64_t column = i % columns;
    const int32_t id = data.ids[token];
    const bool valid = id >= 0 && id < data.table_size;
    data.out[data.out_rows.offset(token) + column] =
        valid ? table[data.table_rows.offset(id) + column] : 0.0f;
  }
}

template <typename Arch>
struct EmbedGather {
  static constexpr const char* kName = "embed_gather";
  static constexpr int32_t kOp = pavo_op_embed;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = 256;
  static constexpr int kMinBlocksPerSm = 6;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    return embed_supports(query, verdict) &&
           check.role(0, {PAVO_ROLE_ACTIVATION, PAVO_ROLE_WEIGHT}) && check.activations({0});
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) { return embed_cost(query); }
  static cudaError_t launch(const KernelArgs& args) {
    const EmbedData data = embed_data(args);
    const int64_t blocks = blocks_for(data.out_rows.rows * data.out_rows.columns, kThreads);
    return args.launcher.launch(
        kName,
        embed_gather_kernel<EmbedGather>,
        dim3(static_cast<uint32_t>(blocks < kEmbedMaxBlocks ? blocks : kEmbedMaxBlocks)),
        dim3(kThreads),
        0,
        data);
  }
};

template <typename Arch>
KernelList embed_kernels() {
  static constexpr Kernel kKernels[] = {
      entry<EmbedGather<Arch>, Arch>(), entry<EmbedPacked<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
