// What a bench run found, as a table for people and as JSON.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/cli/bench.h"

namespace pavo::cli {

struct BenchReport {
  std::string model;
  std::string architecture;
  int64_t parameters = 0;
  int64_t weight_bytes = 0;
  std::string placement;  // one line
  std::string kv_type;
  int64_t threads = 0;  // as set; 0: the plugin's choice
  int32_t batch = 0;
  int64_t context = 0;
  bool exact = false;
  std::vector<std::pair<std::string, double>> phases_ms;
  double first_token_ms = 0;  // after the program's start, prompt of one token
  int32_t launches_per_token = 0;
  int64_t kv_bytes_per_token = 0;
  int64_t peak_memory_bytes = 0;
  bool interrupted = false;  // some cases are missing
  std::vector<BenchCase> cases;
};

std::string bench_text(const BenchReport& report);
// Every repetition is in it.
nlohmann::ordered_json bench_json(const BenchReport& report);

}  // namespace pavo::cli
