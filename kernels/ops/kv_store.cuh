// kv_store: pool row slots[t] = x[t], cast to the pool's type with the bytes of quant.h.
//
// x: f32 [T,G,D], rows anywhere; slots: i32 [T], slot = page * PAVO_KV_PAGE_ROWS + row; one that is
// negative or beyond the pool stores nothing. One warp owns one block of 32 values of one head of
// one token, a value a lane. Bit-exact.
#pragma once

#include "kernels/common/checks.h"
#include "kernels/common/entry.h"
#include "kernels/common/kv_page.cuh"
#include "kernels/common/kv_pool_check.h"
#include "kernels/common/reduce.cuh"
#include "kernels/common/rows.h"

namespace pavo::cuda {

struct KvStoreData {
  const float* x;
  const int32_t* slots;
  KvPool pool;
  RowMap x_rows;       // rows of [T*G, D]
  int64_t blocks;      // of 32 values, in all rows
  int32_t row_blocks;  // of 32 values, in one row
};

template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    kv_store_warp_kernel(KvStoreData data) {
  const int32_t lane = static_cast<int32_t>(threadIdx.x % 32);
  const int64_t first = (int64_t{blockIdx.x} * K::kThreads + threadIdx.x) / 32;
  const int64_t step = int64_t{gridDim.x} * (K::kThreads / 32);
  for (int64_t block = first; block < data.blocks; block += step) {  // the same in a whole warp
    const int64_t row = block / data.row_blocks;
    const int64_t slot = data.slots[row / data.pool.heads];
    std::byte* head =
        data.pool.head(slot < 0 ? -1 : slot / PAVO_KV_PAGE_ROWS, row % data.pool.heads);
    if (head == nullptr) {
      continue;
    }
    const int32_t k = static_cast<int32_t>(block % data.row_blocks) * PAVO_QK + lane;
    const float value = k < data.pool.dims ? data.x[data.x_rows.offset(row) + k] : 0.0f;
    const float amax = warp_reduce<Max>(fmaxf(fabsf(value), 0.0f));  // NaN counts as 0
    with_kv_type(data.pool.type, [&](auto codec) {
      codec.store(data.pool, head, static_cast<int32_t>(slot % PAVO_KV_PAGE_ROWS), k, value, amax);
    });
  }
}

template <typename Arch>
struct KvStoreWarp {
  static constexpr const char* kName = "kv_store_warp";
  static constexpr int32_t kOp = pavo_op_kv_store;
  static constexpr int32_t kDecision = PAVO_ACCEPT;
  static constexpr int kThreads = 128;
  static constexpr int kMinBlocksPerSm = 8;
  static constexpr int64_t kMaxBlocks = 4096;  // enough for any chip; the rest is the loop's

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    if (!check.present(0) || !check.present(1) || !check.present(2) || !check.rank(0, 3) ||
        !check.activations({0}) || !kv_pool_fits(query, check, verdict, 1) || !check.rank(2, 1) ||
        !check.indices({2})) {
      return false;
    }
    const pavo_tensor& x = *query.input(0);
    if (query.node.outputs[0] != query.node.inputs[1]) {
      return sdk::refuse(
          verdict,
          PAVO_REASON_OPERAND,
          check.number(check.output(0)),
          -1,
          query.node.inputs[1],
          query.node.outputs[0],
          "expected the output to be the pool, tensor %u, got %u",
          query.node.inputs[1],
          query.node.outputs[0]);
    }
    return check.dim(1, 1, x.shape[1], "G of x") && check.dim(1, 3, x.shape[2], "D of x") &&
           check.dim(2, 0, x.shape[0], "T of x");
  }
  static int64_t workspace_bytes(const NodeQuery&) { return 0; }
  static Cost cost(const NodeQuery& query) {
    const pavo_tensor& x = *query.input(0);
    const int64_t rows = x.shape[0] * x.shape[1];
    return {
        tensor_bytes(x) + rows * kv_row_bytes(*query.input(1)),
        static_cast<double>(sdk::element_count(x))};
  }
  static cudaError_t launch(const KernelArgs& args) {
    const Operand x = args.input(0), pool = args.input(1), slots = args.input(2);
    KvStoreData data{};
    data.x = x.as<float>();
    data.slots = slots.as<int32_t>();
    data.pool = kv_pool(*pool.tensor, pool.data);
    data.x_rows = row_map(*x.tensor);
    data.row_blocks = static_cast<int32_t>(blocks_for(x.dim(2), PAVO_QK));
    data.blocks = data.x_rows.rows * data.row_blocks;
    const int64_t grid = blocks_for(data.blocks, kThreads / 32);
    return args.launcher.launch(
        kName,
        kv_store_warp_kernel<KvStoreWarp>,
        dim3(static_cast<uint32_t>(grid < kMaxBlocks ? grid : kMaxBlocks)),
        dim3(kThreads),
        0,
        data);
  }
};

template <typename Arch>
KernelList kv_store_kernels() {
  static constexpr Kernel kKernels[] = {entry<KvStoreWarp<Arch>, Arch>()};
  return {kKernels, sizeof(kKernels) / sizeof(kKernels[0])};
}

}  // namespace pavo::cuda
