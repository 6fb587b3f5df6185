// Int8 activations of matmul: each 32 values of a row of x become d * q, |q| <= 127, d = max|x| /
// 127. q is rounded to nearest; a value that is not finite makes its 32 values NaN.
//
// In the workspace, K a multiple of 32, T rounded up by padded_tokens: the bytes [T][K rounded up],
// then d and, for weights that have offsets, d * sum of the q of 32 values [T][K / 32]. The bytes
// lie in vectors of 16, the runs of weight_slices.cuh, in the order in which the lanes of a warp
// read them if each takes a slice of slice_runs of them: [slice / 32][run][slice % 32]. With one
// run a slice that is the order of the row.
#pragma once

#include "kernels/common/reduce.cuh"
#include "kernels/ops/matmul_common.cuh"

namespace pavo::cuda {

struct Int8Activations {
  uint4* quants;          // 16 values
  float2* scales;         // d, d * sum
  int64_t tokens;         // padded
  int32_t token_vectors;  // from row to row of quants
  int32_t token_blocks;   // K / 32, from row to row of scales
  int32_t slice_runs;     // 1 or 2
};

inline int64_t int8_token_vectors(int64_t columns) {
  return (columns / 16 + 63) / 64 * 64;  // whole warps of slices
}

inline int64_t int8_activation_bytes(const NodeQuery& query) {
  const pavo_tensor& x = *query.input(0);
  const int64_t token_bytes = int8_token_vectors(x.shape[1]) * 16 + x.shape[1] / 32 * 8;
  return padded_tokens(x.shape[0]) * token_bytes;
}

inline Int8Activations int8_activations(
    const KernelArgs& args, const MatmulData& data, int32_t slice_runs) {
  Int8Activations out{};
  out.quants = reinterpret_cast<uint4*>(args.workspace);
  out.tokens = padded_tokens(data.tokens);
  out.token_blocks = static_cast<int32_t>(data.columns / 32);
  out.token_vectors = static_cast<int32_t>(int8_token_vectors(data.columns));
  out.slice_runs = slice_runs;
  out.scales = reinterpret_cast<float2*>(out.quants + out.tokens * out.token_vectors);
  return out;
}

// Where run `run` of a row is among its vectors.
__device__ __forceinline__ int32_t int8_vector(int32_t run, int32_t slice_runs) {
  const int32_t slice = run / slice_runs;
  return (slice / 32 * slice_runs + run % slice_runs) * 32 + slice % 32;
}

// Over groups of kWidth neighbouring lanes.
template <int kWidth>
__device__ __forceinline__ uint32_t lanes_max(uint32_t value) {
#pragma unroll
  for (int offset = kWidth / 2; offset > 0; offset /= 2) {
    const uint32_t other = __shfl_xor_sync(kFullWarp, value, offset);
    value = value > other ? value : other;
  }
  return value;
}

template <int kWidth>
__device__ __forceinline__ int32_t lanes_sum(int32_t value) {
#pragma unroll
  for (int offset = kWidth / 2; offset > 0; offset /= 2) {
    value += __shfl_xor_sync(kFullWarp, value, offset);
  }
  return value;
}

// Four values a thread, so eight neighbouring lanes a block of 32. x is read value by value: it may
// lie at any address.
template <typename K>
__global__ void __launch_bounds__(K::kThreads, K::kMinBlocksPerSm)
    matmul_quantise_kernel(MatmulData data, Int8Activations out) {
  const int64_t row_quads = data.columns / 4;
  const int64_t count = out.tokens * row_quads;
  const int64_t step = int64_t{gridDim.x} * K::kThreads;
  for (int64_t base = int64_t{blockIdx.x} * K::kThreads; base < count; base += step) {
    const int64_t i = base + threadIdx.x;
    const bool present = i < count;  // all lanes take part in the sums
    float values[4] = {};
    uint32_t peak = 0;
    if (present) {
      const int64_t token = i / row_quads < data.tokens ? i / row_quads : data.tokens - 1;
      const float* x = data.x + data.x_rows.offset(token) + i % row_quads * 4;
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        values[j] = x[j];
        // As bits, so that infinity and NaN win.
        const uint32_t bits = __float_as_uint(values[j]) & 0x7fffffffu;
        peak = peak > bits ? peak : bits;
      }
    }
    const float d = __uint_as_float(lanes_max<8>(peak)) / 127.0f;
    const float inverse = d >= 1e-38f ? 1.0f / d : 0.0f;  // NaN too
    uint32_t word = 0;
    int32_t sum = 0;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int32_t quant = __float2int_rn(values[j] * inverse);
      word |= (static_cast<uint32_t>(quant) & 0xffu) << (8 * j);
      sum += quant;
    }
    sum = lanes_sum<8>(sum);
    if (present) {
      const auto in_row = static_cast<int32_t>(i % row_quads);
      const int32_t vector = int8_vector(in_row / 4, out.slice_runs);
      const int64_t target = i / row_quads * out.token_vectors + vector;
      reinterpret_cast<uint32_t*>(out.quants)[4 * target + in_row % 4] = word;
      if (i % 8 == 0) {
        out.scales[i / 8] = make_float2(d, d * static_cast<float>(sum));
      }
    }
  }
}

template <typename K>
cudaError_t launch_quantise(
    const KernelArgs& args, const MatmulData& data, const Int8Activations& out) {
  constexpr int64_t kMaxBlocks = 4096;  // the rest is the kernel's loop
  const int64_t blocks = blocks_for(out.tokens * data.columns / 4, K::kThreads);
  return args.launcher.launch(
      "matmul_quantise",
      matmul_quantise_kernel<K>,
      dim3(static_cast<uint32_t>(blocks < kMaxBlocks ? blocks : kMaxBlocks)),
      dim3(K::kThreads),
      0,
      data,
      out);
}

// A sum of products of bytes as f32 without a slow conversion: dot4 starts at kDotStart, the bits
// of 1.5 * 2^23, whose lowest bits count units. Exact while |sum| < 2^22; 64 products are.
constexpr int32_t kDotStart = 0x4b400000;
__device__ __forceinline__ float dot_value(int32_t sum) {
  return __int_as_float(sum) - 12582912.0f;
}

// The products of one run of a weight slice with 16 activations, added to `start`.
template <typename Arch, typename Slice>
__device__ __forceinline__ int32_t
run_dot(const Slice& w, int run, const uint4& quants, int32_t start) {
#pragma unroll
  for (int quad = 0; quad < 4; ++quad) {
    start = Arch::dot4(
        static_cast<int32_t>(w.word(run, quad)),
        static_cast<int32_t>(word_of(quants, quad)),
        start);
  }
  return start;
}

}  // namespace pavo::cuda
