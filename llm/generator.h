// The generation loop: prompt in, tokens out one by one, until something stops it.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/status.h"
#include "llm/engine.h"
#include "llm/sampler.h"

namespace pavo::llm {

struct GenerateOptions {
  int64_t max_tokens = -1;  // -1: until the end of text or of the context
  SamplerOptions sampler;
};

enum class StopReason { kMaxTokens, kEndOfText, kContextFull, kStopped };

const char* stop_reason_name(StopReason reason);

struct GenerateResult {
  std::vector<int32_t> tokens;  // without the end-of-text token
  StopReason reason = StopReason::kMaxTokens;
  int64_t prompt_tokens = 0;
  int64_t prompt_ns = 0;        // all prompt steps
  int64_t first_token_ns = 0;   // prompt and first sample
  int64_t generated_steps = 0;  // decode steps, one token each
  int64_t generated_ns = 0;     // decode steps and sampling
};

struct GenerateCallbacks {
  std::function<bool(int32_t token)> is_end;    // end-of-text tokens; may be empty
  std::function<bool(int32_t token)> on_token;  // false stops; may be empty
  std::function<bool()> keep_going;             // asked between prompt steps; may be empty
};

// Continues the sequence with the prompt (at least one token) and what is generated after it. When
// the user stops it in the prompt, the result is empty with kStopped; other failures are a Status.
Result<GenerateResult> generate(
    Engine& engine,
    SequenceId sequence,
    std::span<const int32_t> prompt,
    const GenerateOptions& options,
    const GenerateCallbacks& callbacks);

}  // namespace pavo::llm
