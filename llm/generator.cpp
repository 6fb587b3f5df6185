#include "llm/generator.h"

#include <chrono>

namespace pavo::llm {
namespace {

using Clock = std::chrono::steady_clock;

int64_t elapsed_ns(Clock::time_point since) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - since).count();
}

}  // namespace

const char* stop_reason_name(StopReason reason) {
  switch (reason) {
    case StopReason::kMaxTokens:
      return "length";
    case StopReason::kEndOfText:
      return "end of text";
    case StopReason::kContextFull:
      return "context full";
    case StopReason::kStopped:
      return "stopped";
  }
  return "?";
}

Result<GenerateResult> generate(
    Engine& engine,
    SequenceId sequence,
    std::span<const int32_t> prompt,
    const GenerateOptions& options,
    const GenerateCallbacks& callbacks) {
  if (prompt.empty()) {
    return Status(Code::kInvalidArgument, "expected a prompt of at least one token");
  }
  GenerateResult result;
  const int64_t length_before = engine.length(sequence);
  Sampler sampler(options.sampler);

  const auto prompt_start = Clock::now();
  const Outputs wanted = options.max_tokens == 0 ? Outputs::kNone : Outputs::kLast;
  Result<std::vector<float>> logits = engine.decode(sequence, prompt, wanted, callbacks.keep_going);
  result.prompt_ns = elapsed_ns(prompt_start);
  result.prompt_tokens = engine.length(sequence) - length_before;
  if (!logits.ok() && logits.status().code() == Code::kCancelled) {
    result.reason = StopReason::kStopped;
    return result;
  }
  if (!logits.ok()) {
    return logits.status();
  }
  auto generate_start = prompt_start;
  while (static_cast<int64_t>(result.tokens.size()) != options.max_tokens) {
    const int32_t token = sampler.sample(*logits);
    if (token < 0) {
      return Status(
          Code::kNodeFailed,
          "the model gave no number as logit (NaN everywhere); its file may be damaged, so compare "
          "its checksum with that of its source");
    }
    if (result.tokens.empty()) {
      result.first_token_ns = elapsed_ns(prompt_start);
      generate_start = Clock::now();
    }
    if (callbacks.is_end && callbacks.is_end(token)) {
      result.reason = StopReason::kEndOfText;
      break;
    }
    result.tokens.push_back(token);
    if (callbacks.on_token && !callbacks.on_token(token)) {
      result.reason = StopReason::kStopped;
      break;
    }
    if (static_cast<int64_t>(result.tokens.size()) == options.max_tokens) {
      break;
    }
    if (engine.length(sequence) == engine.context()) {
      result.reason = StopReason::kContextFull;
      break;
    }
    logits = engine.decode(sequence, {&token, 1}, Outputs::kLast);
    if (!logits.ok()) {
      return logits.status();
    }
    ++result.generated_steps;
  }
  result.generated_ns = result.generated_steps == 0 ? 0 : elapsed_ns(generate_start);
  return result;
}

}  // namespace pavo::llm
