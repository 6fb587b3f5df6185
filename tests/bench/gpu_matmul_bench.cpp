// Speed of the matrix products of plugins, with enough copies of the weights that no cache serves
// them: few tokens as share of the device's copy bandwidth, many as share of its arithmetic peak.
//
//   gpu_matmul_bench [--types q4_0,q8_0] [--tokens 1,8,512] [--json FILE]
//
// PAVO_TEST_PLUGINS names the plugins as for the op tests; without it the three CUDA plugins beside
// the program. A result that is off fails the run.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "pavo/plugin.h"
#include "pavo/quant.h"

#include "tests/bench/gpu_peaks.h"
#include "tests/bench/matmul_device.h"
#include "tests/quantized.h"

namespace pavo::bench {
namespace {

struct Options {
  std::vector<std::string> types;
  std::vector<int64_t> tokens = {1, 2, 4, 8, 16, 32, 64, 128, 512};
  int64_t rows = 28672;
  int64_t columns = 8192;
  bool exact = false;
  std::string json;
};

struct Peaks {
  double copy = 0;  // bytes read and written a second
  double f32 = 0, half2 = 0, dot4 = 0;

  // Of the arithmetic that the kernel's name tells.
  double of(const std::string& variant) const {
    return variant.find("int8") != std::string::npos   ? dot4
           : variant.find("half") != std::string::npos ? half2
                                                       : f32;
  }
};

class Bench {
 public:
  explicit Bench(Options options) : options_(std::move(options)) {}

  // False if a result was wrong or a plugin failed.
  bool run(const test::BackendConfig& config) {
    try {
      MatmulDevice device(config);
      // The plugin's context is the current one only after it has made one.
      peaks_ = {device.copy_bytes_per_s(), f32_peak(), half2_peak(), dot4_peak()};
      print_peaks(config.label);
      for (const int32_t type : test::kWeightTypes) {
        if (wanted(type)) {
          run_type(config.label, type, device);
        }
      }
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", config.label.c_str(), error.what());
      ok_ = false;
    }
    std::fflush(stdout);
    return ok_;
  }

  bool write_json() const {
    if (options_.json.empty()) {
      return true;
    }
    std::ofstream file(options_.json);
    file << rows_.dump(1) << "\n";
    return file.good();
  }

 private:
  bool wanted(int32_t type) const {
    const std::string name = pavo_type_name(type);
    return options_.types.empty() ||
           std::find(options_.types.begin(), options_.types.end(), name) != options_.types.end();
  }

  void print_peaks(const std::string& label) const {
    std::printf(
        "\n%s, weights %lld x %lld%s; this device: copy %.0f GB/s, f32 %.1f, half2 %.1f, dot4 %.1f "
        "TFLOP/s\n%-10s %6s %-22s %10s %8s %7s %7s %8s %7s %9s\n",
        label.c_str(),
        static_cast<long long>(options_.rows),
        static_cast<long long>(options_.columns),
        options_.exact ? ", exact" : "",
        peaks_.copy * 1e-9,
        peaks_.f32 * 1e-12,
        peaks_.half2 * 1e-12,
        peaks_.dot4 * 1e-12,
        "type",
        "tokens",
        "kernel",
        "us",
        "GB/s",
        "% copy",
        "x one",
        "TFLOP/s",
        "% peak",
        "error");
  }

  void run_type(const std::string& label, int32_t type, MatmulDevice& device) {
    device.load({type, options_.rows, options_.columns});
    std::optional<double> one;
    for (const int64_t tokens : options_.tokens) {
      const MatmulTime time =
          device.measure(tokens, options_.exact ? PAVO_PRECISION_EXACT : PAVO_PRECISION_DEFAULT);
      if (!time.refusal.empty()) {
        std::printf(
            "%-10s %6lld refused: %s\n",
            pavo_type_name(type),
            static_cast<long long>(tokens),
            time.refusal.c_str());
        continue;
      }
      if (tokens == 1) {
        one = time.median_s;
      }
      report(label, type, tokens, device.weight_bytes(), time, one);
    }
  }

  void report(
      const std::string& label,
      int32_t type,
      int64_t tokens,
      int64_t weight_bytes,
      const MatmulTime& time,
      std::optional<double> one) {
    const double rate = static_cast<double>(weight_bytes) / time.median_s;
    const double flops = 2.0 * static_cast<double>(options_.rows) *
                         static_cast<double>(options_.columns) * static_cast<double>(tokens) /
                         time.median_s;
    const double peak = peaks_.of(time.variant);
    const bool right = time.error <= time.error_limit;  // false for NaN
    ok_ = ok_ && right;
    std::printf(
        "%-10s %6lld %-22s %10.1f %8.0f %7.1f %7.2f %8.2f %7.1f %9.1e%s\n",
        pavo_type_name(type),
        static_cast<long long>(tokens),
        time.variant.c_str(),
        time.median_s * 1e6,
        rate * 1e-9,
        100 * rate / peaks_.copy,
        one ? time.median_s / *one : 0.0,
        flops * 1e-12,
        peak > 0 ? 100 * flops / peak : 0.0,
        time.error,
        right ? "" : "  WRONG");
    rows_.push_back(
        {{"plugin", label},
         {"type", pavo_type_name(type)},
         {"tokens", tokens},
         {"kernel", time.variant},
         {"median_us", time.median_s * 1e6},
         {"fastest_us", time.fastest_s * 1e6},
         {"weight_bytes", weight_bytes},
         {"copy_share", rate / peaks_.copy},
         {"tflops", flops * 1e-12},
         {"peak_share", peak > 0 ? flops / peak : 0.0},
         {"error", time.error},
         {"right", right}});
  }

  Options options_;
  Peaks peaks_;
  bool ok_ = true;
  nlohmann::json rows_ = nlohmann::json::array();
};

int run(int argc, char** argv) {
  Options options;
  CLI::App app("Speed of matrix products, plugin by plugin");
  app.add_option("--types", options.types, "weight types; default: all")->delimiter(',');
  app.add_option("--tokens", options.tokens, "activation rows")->delimiter(',');
  app.add_option("--rows", options.rows, "of the weights");
  app.add_option("--columns", options.columns, "of the weights, whole blocks");
  app.add_flag("--exact", options.exact, "f32 activations");
  app.add_option("--json", options.json, "file to write");
  CLI11_PARSE(app, argc, argv);
  const auto folder = std::filesystem::read_symlink("/proc/self/exe").parent_path() / "plugins";
  std::string plugins;
  for (const char* sm : {"60", "61", "70"}) {
    plugins += (plugins.empty() ? "" : ";") + (folder / "libpavo-cuda-sm").string() + sm + ".so";
  }
  setenv("PAVO_TEST_PLUGINS", plugins.c_str(), 0);
  Bench bench(options);
  bool ok = true;
  for (const test::BackendConfig& config : test::backend_configs()) {
    ok = bench.run(config) && ok;
  }
  return bench.write_json() && ok ? 0 : 1;
}

}  // namespace
}  // namespace pavo::bench

int main(int argc, char** argv) {
  try {
    return pavo::bench::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "gpu_matmul_bench: %s\n", error.what());
    return 1;
  }
}
