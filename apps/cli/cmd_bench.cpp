// pavo bench: how fast a model runs here, at several prompt sizes and depths.
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/bench.h"
#include "apps/cli/bench_report.h"
#include "apps/cli/command.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/io.h"
#include "apps/cli/progress.h"
#include "apps/cli/session.h"

namespace pavo::cli {

namespace {

struct BenchFlags {
  ModelFlags model;
  BenchPlan plan;
  bool json = false;
};

void add_sizes(
    CLI::App* command,
    const std::string& name,
    std::vector<int64_t>* sizes,
    int64_t least,
    const std::string& help) {
  command->add_option(name, *sizes, help)
      ->delimiter(',')
      ->check(CLI::Range(least, int64_t{1} << 27))
      ->type_name("N,...")
      ->capture_default_str();
}

// The time from the program's start to a first token, for the shortest prompt.
Status time_first_token(Session* session, double* ms) {
  PAVO_ASSIGN_OR_RETURN(const llm::SequenceId sequence, session->engine->create_sequence());
  const int32_t token = 0;
  PAVO_RETURN_IF_ERROR(
      session->engine->decode(sequence, {&token, 1}, llm::Outputs::kLast).status());
  session->engine->release_sequence(sequence);
  session->phases.end("first step");
  *ms = session->phases.since_start_ms();
  return Status();
}

Result<BenchReport> make_report(const BenchFlags& flags, Session* session) {
  BenchReport report;
  PAVO_RETURN_IF_ERROR(time_first_token(session, &report.first_token_ms));
  const llm::ModelInfo& info = session->engine->info();
  report.model = flags.model.model;
  report.architecture = info.architecture;
  report.parameters = info.parameters;
  report.weight_bytes = info.weight_bytes;
  report.placement = to_line(session->placement);
  report.kv_type = session->config.kv_type.value;
  report.threads = session->config.threads.value;
  report.batch = session->engine->batch();
  report.context = session->engine->context();
  report.exact = flags.model.exact;
  report.phases_ms = session->phases.ms();
  PAVO_ASSIGN_OR_RETURN(report.launches_per_token, session->engine->launches_per_token());
  report.kv_bytes_per_token = session->engine->kv_bytes_per_token();
  return report;
}

Status bench(const BenchFlags& flags) {
  PAVO_ASSIGN_OR_RETURN(Session session, open_session(flags.model));
  const int64_t longest = flags.plan.longest();
  if (longest == 0) {
    return Status(Code::kInvalidArgument, "expected at least one size with --prompt or --generate");
  }
  PAVO_RETURN_IF_ERROR(start_engine(flags.model, {longest, longest}, &session));
  PAVO_ASSIGN_OR_RETURN(BenchReport report, make_report(flags, &session));
  Progress progress("bench", flags.model.settings.quiet);
  const InterruptScope interrupt;
  const Status status = run_bench(
      *session.engine,
      flags.plan,
      [&](int64_t done, int64_t total) {
        progress.update(done, total);
        return !InterruptScope::requested();
      },
      &report.cases);
  progress.clear();
  if (!status.ok() && status.code() != Code::kCancelled) {
    return status;
  }
  report.interrupted = !status.ok();
  report.peak_memory_bytes = peak_memory_bytes();
  PAVO_RETURN_IF_ERROR(
      StandardOutput().write(flags.json ? bench_json(report).dump(2) + "\n" : bench_text(report)));
  return close_trace(flags.model, status, &session);
}

}  // namespace

void add_bench(CLI::App* app, Action* action) {
  CLI::App* command = app->add_subcommand("bench", "measure prompt and generation speed");
  const auto flags = std::make_shared<BenchFlags>();
  add_sizes(command, "-p,--prompt", &flags->plan.prompts, 0, "prompt sizes; 0: none");
  add_sizes(command, "-n,--generate", &flags->plan.generate, 0, "tokens to generate; 0: none");
  add_sizes(command, "-d,--depth", &flags->plan.depths, 0, "tokens in the context beforehand");
  command
      ->add_option("-r,--repetitions", flags->plan.repetitions, "of each test; the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "as JSON, with every repetition");
  add_model_options(command, &flags->model);
  command->callback([flags, action] { *action = [flags] { return bench(*flags); }; });
}

}  // namespace pavo::cli
