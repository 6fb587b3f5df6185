// Cuts text into the pieces within which byte-pair merges may happen: words, numbers, runs of
// punctuation or space, by the rule that the vocabulary was trained with.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "core/status.h"

struct pcre2_real_code_8;

namespace pavo::llm {

// Immutable; any thread may split.
class PreTokenizer {
 public:
  // `name` as GGUF's tokenizer.ggml.pre has it. kUnsupported, with the name, for an unknown rule.
  static Result<PreTokenizer> make(std::string_view name);

  // Calls `piece` for each piece in order; together they are the text. The text must be valid
  // UTF-8. An error is one of the pattern engine's limits, and then some pieces were missed.
  Status split(std::string_view text, const std::function<void(std::string_view)>& piece) const;

  // A piece that is a token as a whole is not merged step by step.
  bool prefers_whole_pieces() const { return prefers_whole_pieces_; }

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  struct Splitter;

  // Applied in turn: a match is a piece of its own, and so is the text between matches.
  std::vector<std::unique_ptr<pcre2_real_code_8, FreeCode>> patterns_;
  bool prefers_whole_pieces_ = false;
};

}  // namespace pavo::llm
