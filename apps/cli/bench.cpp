#include "apps/cli/bench.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace pavo::cli {

namespace {

using Clock = std::chrono::steady_clock;

// Ids spread over the vocabulary: any will do for time, equal ones could hide memory traffic.
std::vector<int32_t> bench_tokens(int64_t count, int64_t vocab_size) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  uint64_t state = 1;
  for (int32_t& id : ids) {
    state = state * 6364136223846793005u + 1442695040888963407u;  // Knuth's MMIX generator
    id = static_cast<int32_t>((state >> 33) % static_cast<uint64_t>(vocab_size));
  }
  return ids;
}

class Bench {
 public:
  Bench(llm::Engine& engine, llm::SequenceId sequence, std::function<bool()> keep_going)
      : engine_(engine), sequence_(sequence), keep_going_(std::move(keep_going)) {}

  // Makes the sequence `depth` tokens long.
  Status fill(int64_t depth) {
    const int64_t have = engine_.length(sequence_);
    if (have >= depth) {
      engine_.truncate(sequence_, depth);
      return Status();
    }
    const auto ids = bench_tokens(depth - have, engine_.info().vocab_size);
    return engine_.decode(sequence_, ids, llm::Outputs::kNone, keep_going_).status();
  }

  // One repetition; leaves the sequence longer. Warming up is not recorded.
  Status time(bool record, BenchCase* test_case) {
    const BenchCase& test = *test_case;
    const auto ids = bench_tokens(test.tokens, engine_.info().vocab_size);
    const std::span<const int32_t> all = ids;
    const size_t stride = test.is_prompt ? ids.size() : 1;
    const llm::EngineStats before = engine_.stats();
    const auto start = Clock::now();
    for (size_t i = 0; i < ids.size(); i += stride) {
      const auto part = all.subspan(i, stride);
      PAVO_RETURN_IF_ERROR(
          engine_.decode(sequence_, part, llm::Outputs::kLast, keep_going_).status());
    }
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    const llm::EngineStats& after = engine_.stats();
    if (record) {
      test_case->seconds.push_back(seconds);
      test_case->host_seconds.push_back(static_cast<double>(after.host_ns - before.host_ns) * 1e-9);
      test_case->step_seconds.push_back(
          static_cast<double>(after.total_ns - before.total_ns) * 1e-9);
    }
    return Status();
  }

 private:
  llm::Engine& engine_;
  llm::SequenceId sequence_;
  std::function<bool()> keep_going_;
};

std::vector<BenchCase> cases_of(const BenchPlan& plan) {
  std::vector<BenchCase> cases;
  for (const int64_t depth : plan.depths) {
    for (const int64_t tokens : plan.prompts) {
      cases.push_back({true, tokens, depth, {}, {}, {}});
    }
    for (const int64_t tokens : plan.generate) {
      cases.push_back({false, tokens, depth, {}, {}, {}});
    }
  }
  std::erase_if(cases, [](const BenchCase& test) { return test.tokens == 0; });
  return cases;
}

}  // namespace

int64_t BenchPlan::longest() const {
  int64_t longest = 0;
  for (const BenchCase& test : cases_of(*this)) {
    longest = std::max(longest, test.depth + test.tokens);
  }
  return longest;
}

double BenchCase::median_seconds() const {
  std::vector<double> sorted = seconds;
  std::sort(sorted.begin(), sorted.end());
  const size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

double BenchCase::host_share() const {
  const double steps = std::accumulate(step_seconds.begin(), step_seconds.end(), 0.0);
  return steps > 0 ? std::accumulate(host_seconds.begin(), host_seconds.end(), 0.0) / steps : 0.0;
}

Status run_bench(
    llm::Engine& engine,
    const BenchPlan& plan,
    const std::function<bool(int64_t, int64_t)>& keep_going,
    std::vector<BenchCase>* done) {
  std::vector<BenchCase> cases = cases_of(plan);
  PAVO_ASSIGN_OR_RETURN(const llm::SequenceId sequence, engine.create_sequence());
  Bench bench(engine, sequence, [&] {
    return keep_going(static_cast<int64_t>(done->size()), static_cast<int64_t>(cases.size()));
  });
  for (BenchCase& test : cases) {
    for (int32_t i = -1; i < plan.repetitions; ++i) {
      PAVO_RETURN_IF_ERROR(bench.fill(test.depth));
      PAVO_RETURN_IF_ERROR(bench.time(i >= 0, &test));
    }
    done->push_back(std::move(test));
  }
  engine.release_sequence(sequence);
  return Status();
}

}  // namespace pavo::cli
