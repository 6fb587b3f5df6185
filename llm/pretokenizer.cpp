#include "llm/pretokenizer.h"

#include <algorithm>
#include <string>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "llm/message.h"

namespace pavo::llm {
namespace {

// The patterns are facts of the published tokenizers, in PCRE2's spelling: \p{White_Space} instead
// of \s, since PCRE2 counts U+180E as a space and Unicode does not.
#define PAVO_SPACE "\\p{White_Space}"
constexpr const char* kDigit = "\\p{N}";
constexpr const char* kGpt2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^" PAVO_SPACE
                              "\\p{L}\\p{N}]+|" PAVO_SPACE "+(?!\\P{White_Space})|" PAVO_SPACE "+";

// Everything after the words and numbers of the llama3 pattern and its kin.
#define PAVO_LINES_AND_SPACES \
  "|" PAVO_SPACE "*[\\r\\n]+|" PAVO_SPACE "+(?!\\P{White_Space})|" PAVO_SPACE "+"
#define PAVO_PUNCTUATION "| ?[^" PAVO_SPACE "\\p{L}\\p{N}]+"
#define PAVO_CONTRACTION_OR_WORD "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+"
constexpr const char* kLlama3 =
    PAVO_CONTRACTION_OR_WORD "|\\p{N}{1,3}" PAVO_PUNCTUATION "[\\r\\n]*" PAVO_LINES_AND_SPACES;
constexpr const char* kQwen2 =
    PAVO_CONTRACTION_OR_WORD "|\\p{N}" PAVO_PUNCTUATION "[\\r\\n]*" PAVO_LINES_AND_SPACES;
// Words are cut where lower case is followed by upper case.
constexpr const char* kTekken =
    "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+"
    "|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*"
    "|\\p{N}" PAVO_PUNCTUATION "[\\r\\n/]*" PAVO_LINES_AND_SPACES;
#undef PAVO_CONTRACTION_OR_WORD
#undef PAVO_PUNCTUATION
#undef PAVO_LINES_AND_SPACES
constexpr const char* kFalconPunctuation = "[\\p{P}$+<=>^~|`]+";
constexpr const char* kThreeDigits = "[0-9][0-9][0-9]";
constexpr const char* kCodeLine = "[\\r\\n]";
constexpr const char* kCodeWord = PAVO_SPACE "?\\p{L}+";
constexpr const char* kCodePunctuation = PAVO_SPACE "?\\p{P}+";
constexpr const char* kCodeCjk = "[\\x{4e00}-\\x{9fa5}\\x{800}-\\x{4e00}\\x{ac00}-\\x{d7ff}]+";
#undef PAVO_SPACE

struct Rule {
  std::vector<std::string_view> names;
  std::vector<const char*> patterns;
  bool prefers_whole_pieces;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = {
      {{"gpt-2", "phi-2", "mpt", "olmo", "exaone4"}, {kGpt2}, false},
      {{"smollm", "starcoder", "refact", "command-r", "codeshell", "exaone", "minerva-7b"},
       {kDigit, kGpt2},
       false},
      {{"llama-bpe", "llama3", "llama-v3", "falcon3", "pixtral"}, {kLlama3}, true},
      {{"qwen2", "deepseek-r1-qwen", "megrez", "stablelm2"}, {kQwen2}, false},
      {{"tekken"}, {kTekken}, true},
      {{"falcon"}, {kFalconPunctuation, kGpt2, kThreeDigits}, false},
      {{"deepseek-coder"}, {kCodeLine, kCodeWord, kCodePunctuation, kCodeCjk, kDigit}, false}};
  return all;
}

std::string engine_message(int error) {
  PCRE2_UCHAR text[256] = {};
  pcre2_get_error_message(error, text, sizeof text);
  return reinterpret_cast<const char*>(text);
}

struct FreeMatch {
  void operator()(pcre2_match_data* data) const { pcre2_match_data_free(data); }
  void operator()(pcre2_match_context* context) const { pcre2_match_context_free(context); }
};

}  // namespace

void PreTokenizer::FreeCode::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

// One split: the engine's scratch, and the recursion through the patterns.
struct PreTokenizer::Splitter {
  const PreTokenizer& owner;
  const std::function<void(std::string_view)>& piece;
  std::unique_ptr<pcre2_match_data, FreeMatch> match;
  std::unique_ptr<pcre2_match_context, FreeMatch> context;

  // Applies pattern `level` and later ones. Depth is the number of patterns.
  Status run(std::string_view text, size_t level) const {
    if (text.empty()) {
      return {};
    }
    if (level == owner.patterns_.size()) {
      piece(text);
      return {};
    }
    size_t done = 0;
    while (done < text.size()) {
      const int found = pcre2_match(
          owner.patterns_[level].get(),
          reinterpret_cast<PCRE2_SPTR>(text.data()),
          text.size(),
          done,
          PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY,  // checked once by the caller, not at every match
          match.get(),
          context.get());
      if (found == PCRE2_ERROR_NOMATCH) {
        break;
      }
      if (found < 0) {
        return {
            Code::kInvalidArgument, "tokenizer: cannot split the text: " + engine_message(found)};
      }
      const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
      const size_t begin = range[0];
      const size_t end = range[1];
      PAVO_RETURN_IF_ERROR(run(text.substr(done, begin - done), level + 1));
      PAVO_RETURN_IF_ERROR(run(text.substr(begin, end - begin), level + 1));
      done = end;
    }
    return run(text.substr(done), level + 1);
  }
};

Result<PreTokenizer> PreTokenizer::make(std::string_view name) {
  const auto has_name = [&](const Rule& rule) {
    return std::find(rule.names.begin(), rule.names.end(), name) != rule.names.end();
  };
  const auto rule = std::find_if(rules().begin(), rules().end(), has_name);
  if (rule == rules().end()) {
    std::string known;
    for (const Rule& each : rules()) {
      known += concat(known.empty() ? "" : ", ", each.names.front());
    }
    return Status(
        Code::kUnsupported,
        concat(
            "tokenizer: pre-tokenizer (tokenizer.ggml.pre): expected one like ",
            known,
            "; found ",
            quote(name)));
  }
  PreTokenizer out;
  out.prefers_whole_pieces_ = rule->prefers_whole_pieces;
  for (const char* pattern : rule->patterns) {
    int error = 0;
    PCRE2_SIZE where = 0;
    pcre2_code* code = pcre2_compile(
        reinterpret_cast<PCRE2_SPTR>(pattern),
        PCRE2_ZERO_TERMINATED,
        PCRE2_UTF | PCRE2_UCP,
        &error,
        &where,
        nullptr);
    if (code == nullptr) {
      return Status(
          Code::kInternal,
          concat(
              "tokenizer: pattern ", quote(pattern), " at ", where, ": ", engine_message(error)));
    }
    out.patterns_.emplace_back(code);
    // Without it (no executable memory, no such build) matching is slower, not different.
    pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
  }
  return out;
}

Status PreTokenizer::split(
    std::string_view text, const std::function<void(std::string_view)>& piece) const {
  const Splitter splitter = {
      *this,
      piece,
      std::unique_ptr<pcre2_match_data, FreeMatch>(pcre2_match_data_create(1, nullptr)),
      std::unique_ptr<pcre2_match_context, FreeMatch>(pcre2_match_context_create(nullptr))};
  if (splitter.match == nullptr || splitter.context == nullptr) {
    return {Code::kOutOfMemory, "tokenizer: no memory to split the text"};
  }
  // The patterns need a few steps a byte; one that needs more is stopped instead of hanging.
  const uint64_t limit = 1'000'000 + 20 * static_cast<uint64_t>(text.size());
  pcre2_set_match_limit(
      splitter.context.get(), static_cast<uint32_t>(std::min<uint64_t>(limit, UINT32_MAX)));
  return splitter.run(text, 0);
}

}  // namespace pavo::llm
