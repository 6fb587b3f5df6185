// Speed of the CPU plugin's inner kernels: weight bytes and products per second. The matrices of
// one benchmark rotate through more memory than the caches of one core hold, as the layers of a
// model do.
//
//   cpu_ops_bench --benchmark_filter='q8dot/q4_1'
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "pavo/quant.h"

#include "plugins/cpu/ops/matmul_problem.h"
#include "plugins/cpu/simd_targets.h"
#include "plugins/cpu/thread_pool.h"
#include "tests/quantized.h"
#include "tests/random.h"

namespace pavo::cpu {
namespace {

// Weights of all matrices together; SmolLM2-135M reads about this much a token.
constexpr int64_t kRotationBytes = 96 << 20;

std::vector<std::byte> aligned_workspace(int64_t bytes) {
  return std::vector<std::byte>(static_cast<size_t>(bytes + 64));
}

std::byte* align(std::vector<std::byte>& memory) {
  const auto address = reinterpret_cast<uintptr_t>(memory.data());
  return memory.data() + (64 - address % 64) % 64;
}

void bench_matmul(
    benchmark::State& state,
    MatmulFunctions functions,
    int32_t type,
    int64_t rows,
    int64_t columns,
    int64_t tokens,
    int32_t threads) {
  ThreadPool pool(threads);
  const int64_t bytes = rows * pavo_type_row_bytes(type, columns);
  const int64_t copies = std::max<int64_t>(1, kRotationBytes / bytes);
  test::Random random;
  // Repeated, since random bytes are slow to make.
  const auto matrix = test::random_weights(random, type, rows * columns);
  std::vector<std::byte> weights;
  for (int64_t i = 0; i < copies; ++i) {
    weights.insert(weights.end(), matrix.begin(), matrix.end());
  }
  const std::vector<float> x = random.normals(tokens * columns);
  std::vector<float> out(static_cast<size_t>(tokens * rows));
  auto workspace = aligned_workspace(functions.workspace_bytes(tokens, columns, threads));
  MatmulProblem problem = {};
  problem.weight_type = type;
  problem.tokens = tokens;
  problem.rows = rows;
  problem.columns = columns;
  problem.x = x.data();
  problem.x_stride = columns;
  problem.out = out.data();
  problem.out_stride = rows;
  problem.workspace = align(workspace);
  int64_t copy = 0;
  for (auto _ : state) {
    problem.w = weights.data() + copy * bytes;
    copy = (copy + 1) % copies;
    functions.run(problem, pool);
    benchmark::ClobberMemory();
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["GB/s"] =
      benchmark::Counter(runs * static_cast<double>(bytes) * 1e-9, benchmark::Counter::kIsRate);
  state.counters["GFLOP/s"] = benchmark::Counter(
      runs * 2e-9 * static_cast<double>(tokens * rows * columns), benchmark::Counter::kIsRate);
}

void register_matmuls(int32_t threads) {
  struct Kernel {
    const char* name;
    MatmulFunctions functions;
    std::vector<int32_t> types;
  };
  const Kernel kernels[] = {
      {"q8dot",
       matmul_q8dot_functions(),
       {PAVO_TYPE_Q4_1, PAVO_TYPE_Q8_0, PAVO_TYPE_Q4_0, PAVO_TYPE_Q4_K, PAVO_TYPE_Q6_K}},
      {"f32",
       matmul_f32_functions(),
       {PAVO_TYPE_F16, PAVO_TYPE_F32, PAVO_TYPE_BF16, PAVO_TYPE_Q4_1}},
  };
  struct Size {
    int64_t rows, columns;
  };
  for (const Kernel& kernel : kernels) {
    for (const int32_t type : kernel.types) {
      for (const Size size : {Size{576, 576}, Size{1536, 576}, Size{576, 1536}, Size{49152, 576}}) {
        const int64_t columns =
            pavo_type_block_values(type) == 256 ? (size.columns + 255) / 256 * 256 : size.columns;
        for (const int64_t tokens : {1, 2, 4, 5, 8, 64, 512}) {
          if (!kernel.functions || (size.rows > 2000 && tokens > 64)) {
            continue;
          }
          const std::string name = std::string(kernel.name) + "/" + pavo_type_name(type) + "/" +
                                   std::to_string(size.rows) + "x" + std::to_string(columns) +
                                   "/T" + std::to_string(tokens) + "/threads" +
                                   std::to_string(threads);
          benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
            bench_matmul(state, kernel.functions, type, size.rows, columns, tokens, threads);
          })->UseRealTime();
        }
      }
    }
  }
}

}  // namespace
}  // namespace pavo::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const int32_t threads : {1, pavo::cpu::available_cores()}) {
    pavo::cpu::register_matmuls(threads);
  }
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
