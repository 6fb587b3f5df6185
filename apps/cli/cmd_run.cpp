// pavo run: continues a prompt. Text to standard output as it comes, everything else to standard
// error.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <random>

#include "apps/cli/command.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/io.h"
#include "apps/cli/progress.h"
#include "apps/cli/session.h"
#include "core/text.h"
#include "llm/generator.h"
#include "llm/tokenizer.h"

namespace pavo::cli {

namespace {

struct RunFlags {
  ModelFlags model;
  std::optional<std::string> prompt;
  std::optional<std::string> prompt_file;
  int64_t tokens = -1;
  llm::SamplerOptions sampler = {.temperature = 0.8, .top_k = 40, .top_p = 0.95, .min_p = 0.05};
  std::optional<int64_t> seed;
  bool timings = false;
};

// A check for CLI11: CLI::Range lets NaN pass.
std::function<std::string(const std::string&)> number_in(double low, double high) {
  return [low, high](const std::string& text) {
    double value = 0;
    const bool is_number = CLI::detail::lexical_cast(text, value) && std::isfinite(value);
    if (is_number && value >= low && value <= high) {
      return std::string();
    }
    std::array<char, 96> fault{};
    std::snprintf(fault.data(), fault.size(), "expected a number from %g to %g, got ", low, high);
    return fault.data() + ("'" + text + "'");
  };
}

// CLI11 reads what does not fit as the nearest number that does, so a range of all numbers would
// let it pass.
std::function<std::string(const std::string&)> integer_in(int64_t low, int64_t high) {
  return [low, high](const std::string& text) {
    const std::optional<int64_t> value = parse_int(text);
    if (value && *value >= low && *value <= high) {
      return std::string();
    }
    return "expected an integer from " + std::to_string(low) + " to " + std::to_string(high) +
           ", got '" + text + "'";
  };
}

void add_run_options(CLI::App* command, RunFlags* flags) {
  CLI::Option* prompt =
      command->add_option("-p,--prompt", flags->prompt, "text to continue")->type_name("TEXT");
  command->add_option("-f,--file", flags->prompt_file, "file with the prompt; - is standard input")
      ->type_name("FILE")
      ->excludes(prompt);
  command
      ->add_option(
          "-n,--tokens",
          flags->tokens,
          "most tokens to generate; 0: only process the prompt; -1: until the end of the text or "
          "of "
          "the context")
      ->check(CLI::Range(int64_t{-1}, int64_t{1} << 31))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--temp", flags->sampler.temperature, "temperature; 0: always the likeliest")
      ->check(number_in(0, 100))
      ->type_name("T")
      ->capture_default_str();
  command->add_option("--top-k", flags->sampler.top_k, "choose among the K likeliest; 0: all")
      ->check(CLI::Range(0, 1 << 30))
      ->type_name("K")
      ->capture_default_str();
  command
      ->add_option(
          "--top-p", flags->sampler.top_p, "choose among the likeliest that reach P together")
      ->check(number_in(0, 1))
      ->type_name("P")
      ->capture_default_str();
  command->add_option("--min-p", flags->sampler.min_p, "drop tokens below P times the likeliest")
      ->check(number_in(0, 1))
      ->type_name("P")
      ->capture_default_str();
  command->add_option("-s,--seed", flags->seed, "of the choice of tokens; not given or -1: random")
      ->check(integer_in(-1, std::numeric_limits<int64_t>::max()))
      ->type_name("N");
  command->add_flag("--timings", flags->timings, "report where the time went");
  add_model_options(command, &flags->model);
}

// The prompt's bytes, whichever option has them.
Result<std::string> prompt_text(const RunFlags& flags) {
  if (flags.prompt_file) {
    PAVO_RETURN_IF_ERROR(check_output("--trace", flags.model.trace_file, {*flags.prompt_file}));
    return read_all(*flags.prompt_file);
  }
  if (flags.prompt) {
    return *flags.prompt;
  }
  return Status(Code::kInvalidArgument, "expected a prompt: -p TEXT, -f FILE, or -f - to read it");
}

Result<std::vector<int32_t>> prompt_tokens(
    const llm::Tokenizer& tokenizer, const std::string& text) {
  size_t dropped = 0;
  PAVO_ASSIGN_OR_RETURN(
      std::vector<int32_t> tokens,
      tokenizer.encode(text, {.add_special = true, .parse_special = true}, &dropped));
  if (dropped != 0) {
    note(
        "warning: the vocabulary cannot express " + std::to_string(dropped) +
        " bytes of the prompt");
  }
  if (tokens.empty()) {
    return Status(
        Code::kInvalidArgument,
        "the prompt is empty, and this model does not begin texts with a token of its own; "
        "expected "
        "at least one character, as -p ' '");
  }
  return tokens;
}

double per_second(int64_t count, int64_t ns) {
  return ns > 0 ? static_cast<double>(count) * 1e9 / static_cast<double>(ns) : 0;
}

void note_timings(Session& session, const llm::GenerateResult& result, double first_token_ms) {
  std::array<char, 256> line{};
  note("phases (ms): " + phases_text(session.phases));
  std::snprintf(
      line.data(),
      line.size(),
      "prompt: %lld tokens in %.1f ms, %.1f tokens/s",
      static_cast<long long>(result.prompt_tokens),
      static_cast<double>(result.prompt_ns) / 1e6,
      per_second(result.prompt_tokens, result.prompt_ns));
  note(line.data());
  if (!result.tokens.empty()) {
    std::snprintf(
        line.data(),
        line.size(),
        "generation: %lld tokens, %lld steps in %.1f ms, %.1f tokens/s; first token %.1f ms after "
        "start",
        static_cast<long long>(result.tokens.size()),
        static_cast<long long>(result.generated_steps),
        static_cast<double>(result.generated_ns) / 1e6,
        per_second(result.generated_steps, result.generated_ns),
        first_token_ms);
    note(line.data());
  }
  const Result<int32_t> launches = session.engine->launches_per_token();
  std::snprintf(
      line.data(),
      line.size(),
      "launches per token: %d; K/V bytes per token: %lld; peak memory: %.1f MB",
      launches.ok() ? *launches : -1,
      static_cast<long long>(session.engine->kv_bytes_per_token()),
      static_cast<double>(peak_memory_bytes()) / 1e6);
  note(line.data());
}

// Text on its way to standard output.
class TextPrinter {
 public:
  explicit TextPrinter(const llm::Tokenizer& tokenizer) : decoder_(tokenizer) {}

  void token(int32_t id) { print(decoder_.next(id)); }
  // The rest, and the end of the last line.
  void finish() {
    print(decoder_.finish());
    if (any_ && last_ != '\n') {
      print("\n");
    }
  }
  // False if nobody reads on or a write failed: then there is no point in more text.
  bool wanted() const { return status_.ok() && !out_.closed(); }
  const Status& status() const { return status_; }

 private:
  void print(const std::string& text) {
    if (text.empty() || !wanted()) {
      return;
    }
    status_ = out_.write(text);
    any_ = true;
    last_ = text.back();
  }

  llm::StreamDecoder decoder_;
  StandardOutput out_;
  Status status_;
  bool any_ = false;
  char last_ = '\n';
};

Status generate_text(
    const RunFlags& flags,
    const llm::Tokenizer& tokenizer,
    const std::vector<int32_t>& prompt,
    Session* session) {
  llm::Engine& engine = *session->engine;
  PAVO_ASSIGN_OR_RETURN(const llm::SequenceId sequence, engine.create_sequence());
  TextPrinter printer(tokenizer);
  Progress progress("prompt", flags.model.settings.quiet);
  double first_token_ms = 0;
  const InterruptScope interrupt;
  llm::GenerateCallbacks callbacks;
  callbacks.keep_going = [&] {
    progress.update(engine.length(sequence), static_cast<int64_t>(prompt.size()));
    return !InterruptScope::requested();
  };
  callbacks.is_end = [&](int32_t id) { return tokenizer.is_eog(id); };
  callbacks.on_token = [&](int32_t id) {
    if (first_token_ms == 0) {
      first_token_ms = session->phases.since_start_ms();
    }
    progress.clear();
    printer.token(id);
    return printer.wanted() && !InterruptScope::requested();
  };
  const llm::GenerateOptions options{.max_tokens = flags.tokens, .sampler = flags.sampler};
  const Result<llm::GenerateResult> result =
      llm::generate(engine, sequence, prompt, options, callbacks);
  progress.clear();
  printer.finish();
  if (!result.ok()) {
    return result.status();
  }
  PAVO_RETURN_IF_ERROR(printer.status());
  if (result->reason == llm::StopReason::kContextFull && !flags.model.settings.quiet) {
    note(
        "note: stopped because the context of " + std::to_string(engine.context()) +
        " tokens is full; a larger one is set with -c");
  }
  if (flags.timings) {
    note_timings(*session, *result, first_token_ms);
  }
  return InterruptScope::requested() ? Status(Code::kCancelled, "interrupted") : Status();
}

Status run(RunFlags flags) {
  PAVO_ASSIGN_OR_RETURN(const std::string text, prompt_text(flags));
  PAVO_ASSIGN_OR_RETURN(Session session, open_session(flags.model));
  PAVO_ASSIGN_OR_RETURN(const llm::Tokenizer tokenizer, llm::Tokenizer::load(*session.source));
  session.phases.end("tokenizer");
  PAVO_ASSIGN_OR_RETURN(const std::vector<int32_t> prompt, prompt_tokens(tokenizer, text));
  const auto prompt_size = static_cast<int64_t>(prompt.size());
  const TokensNeeded needed = {prompt_size, prompt_size + std::max<int64_t>(flags.tokens, 0)};
  PAVO_RETURN_IF_ERROR(start_engine(flags.model, needed, &session));
  const bool random_seed = !flags.seed || *flags.seed < 0;
  flags.sampler.seed = random_seed ? std::random_device()() : static_cast<uint64_t>(*flags.seed);
  if (random_seed && flags.sampler.temperature > 0 && !flags.model.settings.quiet) {
    note("seed: " + std::to_string(flags.sampler.seed));
  }
  return close_trace(flags.model, generate_text(flags, tokenizer, prompt, &session), &session);
}

}  // namespace

void add_run(CLI::App* app, Action* action) {
  CLI::App* command = app->add_subcommand("run", "continue a prompt");
  const auto flags = std::make_shared<RunFlags>();
  add_run_options(command, flags.get());
  command->callback([flags, action] { *action = [flags] { return run(*flags); }; });
}

}  // namespace pavo::cli
