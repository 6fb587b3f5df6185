#include "apps/cli/bench_report.h"

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>

namespace pavo::cli {

namespace {

__attribute__((format(printf, 1, 2))) std::string format(const char* pattern, ...) {
  std::array<char, 512> text{};
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text.data(), text.size(), pattern, arguments);
  va_end(arguments);
  return text.data();
}

long long wide(int64_t value) {
  return static_cast<long long>(value);
}

}  // namespace

std::string bench_text(const BenchReport& report) {
  std::string text = format(
      "model       %s (%s, %.1f M parameters, %.1f MB of weights)\n",
      report.model.c_str(),
      report.architecture.c_str(),
      static_cast<double>(report.parameters) / 1e6,
      static_cast<double>(report.weight_bytes) / 1e6);
  text += report.placement + "\n";
  text += format(
      "settings    K/V %s, threads %s, batch %d, context %lld%s\n",
      report.kv_type.c_str(),
      report.threads == 0 ? "auto" : std::to_string(report.threads).c_str(),
      report.batch,
      wide(report.context),
      report.exact ? ", exact" : "");
  std::string phases;
  for (const auto& [name, ms] : report.phases_ms) {
    phases += format("%s%s %.1f", phases.empty() ? "" : ", ", name.c_str(), ms);
  }
  text += "phases (ms) " + phases + format(", first token after %.1f\n", report.first_token_ms);
  text += format(
      "per token   %d launches, %lld bytes of K/V; peak memory %.1f MB\n\n",
      report.launches_per_token,
      wide(report.kv_bytes_per_token),
      static_cast<double>(report.peak_memory_bytes) / 1e6);
  text += format(
      "%-10s %8s %8s %12s %12s %12s %8s\n",
      "test",
      "tokens",
      "depth",
      "tokens/s",
      "slowest",
      "fastest",
      "host");
  for (const BenchCase& test : report.cases) {
    const auto [least, most] = std::minmax_element(test.seconds.begin(), test.seconds.end());
    const auto tokens = static_cast<double>(test.tokens);
    text += format(
        "%-10s %8lld %8lld %12.2f %12.2f %12.2f %7.1f%%\n",
        test.is_prompt ? "prompt" : "generate",
        wide(test.tokens),
        wide(test.depth),
        test.tokens_per_second(),
        tokens / *most,
        tokens / *least,
        100.0 * test.host_share());
  }
  if (report.interrupted) {
    text += "interrupted: the other tests did not run\n";
  }
  return text;
}

nlohmann::ordered_json bench_json(const BenchReport& report) {
  nlohmann::ordered_json json = {
      {"model", report.model},
      {"architecture", report.architecture},
      {"parameters", report.parameters},
      {"weight_bytes", report.weight_bytes},
      {"placement", report.placement},
      {"kv_type", report.kv_type},
      {"threads", report.threads},
      {"batch", report.batch},
      {"context", report.context},
      {"exact", report.exact},
      {"first_token_ms", report.first_token_ms},
      {"launches_per_token", report.launches_per_token},
      {"kv_bytes_per_token", report.kv_bytes_per_token},
      {"peak_memory_bytes", report.peak_memory_bytes},
      {"interrupted", report.interrupted},
      {"phases_ms", nlohmann::ordered_json::object()},
      {"tests", nlohmann::ordered_json::array()}};
  for (const auto& [name, ms] : report.phases_ms) {
    json["phases_ms"][name] = ms;
  }
  for (const BenchCase& test : report.cases) {
    json["tests"].push_back(
        {{"test", test.is_prompt ? "prompt" : "generate"},
         {"tokens", test.tokens},
         {"depth", test.depth},
         {"tokens_per_second", test.tokens_per_second()},
         {"seconds", test.seconds},
         {"host_share", test.host_share()},
         {"host_seconds", test.host_seconds},
         {"step_seconds", test.step_seconds}});
  }
  return json;
}

}  // namespace pavo::cli
