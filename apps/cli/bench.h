// Measurements of a running engine: prompts and single-token steps, at several depths of context.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/status.h"
#include "llm/engine.h"

namespace pavo::cli {

struct BenchPlan {
  std::vector<int64_t> prompts = {512};  // tokens processed at once
  std::vector<int64_t> generate = {64};  // tokens one after the other
  std::vector<int64_t> depths = {0};     // tokens in the context before
  int32_t repetitions = 5;

  int64_t longest() const;
};

struct BenchCase {
  bool is_prompt = false;
  int64_t tokens = 0;
  int64_t depth = 0;
  std::vector<double> seconds;       // of each repetition
  std::vector<double> host_seconds;  // part of it before the devices had a step's whole work
  std::vector<double> step_seconds;  // part of it inside of the engine's steps

  double median_seconds() const;
  // Share of the steps' time that the devices waited for the host to queue work, 0..1; about 1
  // where the CPU computes.
  double host_share() const;
  double tokens_per_second() const { return static_cast<double>(tokens) / median_seconds(); }
};

// Runs the plan on a fresh sequence, each case once more beforehand so that programs and caches are
// warm. The tokens are arbitrary but the same in every run. keep_going is asked between steps and
// told how many cases are done; kCancelled if it says no, with the finished cases in *done.
Status run_bench(
    llm::Engine& engine,
    const BenchPlan& plan,
    const std::function<bool(int64_t done, int64_t total)>& keep_going,
    std::vector<BenchCase>* done);

}  // namespace pavo::cli
