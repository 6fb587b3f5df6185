// Builds a tokenizer from the keys tokenizer.ggml.* of a GGUF file.
#include <utility>

#include "llm/byte_alphabet.h"
#include "llm/gguf.h"
#include "llm/message.h"
#include "llm/tokenizer.h"

namespace pavo::llm {
namespace {

constexpr size_t kMaxTokens = 1 << 24;
constexpr const char* kTokensKey = "tokenizer.ggml.tokens";
constexpr const char* kTypesKey = "tokenizer.ggml.token_type";
constexpr const char* kMergesKey = "tokenizer.ggml.merges";

// Control tokens by which chat models end a turn, beside what the file's own keys name.
constexpr std::string_view kEndTexts[] = {
    "<|im_end|>",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|EOT|>",
    "<end_of_turn>"};

Status invalid(const char* key, const std::string& problem) {
  return {Code::kInvalidFile, concat("gguf: key ", quote(key), ": ", problem)};
}

// The id under `key`, if it is there.
Status read_id(
    const GgufFile& file, const char* key, size_t token_count, std::optional<int32_t>* id) {
  if (file.find(key) == nullptr) {
    return {};
  }
  PAVO_ASSIGN_OR_RETURN(const int64_t found, file.get<int64_t>(key));
  if (found < 0 || static_cast<uint64_t>(found) >= token_count) {
    return invalid(key, concat("expected an id below the ", token_count, " tokens, found ", found));
  }
  *id = static_cast<int32_t>(found);
  return {};
}

}  // namespace

Result<Tokenizer> Tokenizer::from_gguf(const GgufFile& file) {
  PAVO_ASSIGN_OR_RETURN(
      const std::string_view model, file.get<std::string_view>("tokenizer.ggml.model"));
  if (model != "gpt2") {
    return Status(
        Code::kUnsupported,
        concat(
            "tokenizer (tokenizer.ggml.model): expected byte-level BPE, 'gpt2', found ",
            quote(model)));
  }
  // Files without the key exist, from before there were several rules; guessing would give wrong
  // tokens in silence.
  PAVO_ASSIGN_OR_RETURN(
      const std::string_view pre, file.get<std::string_view>("tokenizer.ggml.pre"));
  Tokenizer out;
  PAVO_ASSIGN_OR_RETURN(out.pre_, PreTokenizer::make(pre));
  PAVO_RETURN_IF_ERROR(out.read_tokens(file));
  out.index_tokens();
  PAVO_RETURN_IF_ERROR(out.read_merges(file));
  PAVO_RETURN_IF_ERROR(out.read_special(file));
  return out;
}

Status Tokenizer::read_tokens(const GgufFile& file) {
  using Texts = std::vector<std::string_view>;
  PAVO_ASSIGN_OR_RETURN(const Texts texts, file.get<Texts>(kTokensKey));
  PAVO_ASSIGN_OR_RETURN(
      const std::vector<int64_t> kinds, file.get_or<std::vector<int64_t>>(kTypesKey, {}));
  if (texts.empty() || texts.size() > kMaxTokens) {
    return invalid(kTokensKey, concat("expected 1 to ", kMaxTokens, ", found ", texts.size()));
  }
  if (!kinds.empty() && kinds.size() != texts.size()) {
    return invalid(
        kTypesKey, concat("expected one for each of ", texts.size(), ", found ", kinds.size()));
  }
  std::vector<TokenKind> token_kinds;
  for (const int64_t kind : kinds) {
    if (kind < 1 || kind > 6) {
      return invalid(
          kTypesKey,
          concat("token ", token_kinds.size(), ": expected a type from 1 to 6, found ", kind));
    }
    token_kinds.push_back(static_cast<TokenKind>(kind));
  }
  vocabulary_ = Vocabulary(texts, token_kinds);
  return {};
}

void Tokenizer::index_tokens() {
  std::vector<std::pair<std::string_view, int32_t>> user_defined;
  std::vector<std::pair<std::string_view, int32_t>> all_special;
  byte_tokens_.fill(-1);
  for (int32_t id = 0; id < vocabulary_.size(); ++id) {
    const TokenKind kind = vocabulary_.kind(id);
    const std::string_view bytes = vocabulary_.bytes(id);
    if (kind == TokenKind::kUserDefined) {
      user_defined.emplace_back(vocabulary_.text(id), id);
    }
    if (kind == TokenKind::kUserDefined || kind == TokenKind::kControl) {
      all_special.emplace_back(vocabulary_.text(id), id);
    } else if (bytes.size() == 1 && vocabulary_.text(id) == to_byte_alphabet(bytes)) {
      int32_t& slot = byte_tokens_[static_cast<unsigned char>(bytes[0])];
      slot = slot < 0 ? id : slot;
    }
  }
  user_defined_ = TextMatcher(std::move(user_defined));
  all_special_ = TextMatcher(std::move(all_special));
}

Status Tokenizer::read_merges(const GgufFile& file) {
  using Texts = std::vector<std::string_view>;
  PAVO_ASSIGN_OR_RETURN(const Texts merges, file.get<Texts>(kMergesKey));
  if (merges.size() > kMaxTokens) {
    return invalid(kMergesKey, concat("expected up to ", kMaxTokens, ", found ", merges.size()));
  }
  merges_ = MergeTable(merges.size());
  std::string joined;
  for (size_t i = 0; i < merges.size(); ++i) {
    // "left right"; the alphabet has no space, so the first one divides.
    const std::string_view merge = merges[i];
    const size_t space = merge.find(' ');
    if (space == merge.npos || space == 0 || space + 1 == merge.size()) {
      return invalid(kMergesKey, concat("merge ", i, ": expected two texts, found ", quote(merge)));
    }
    joined = merge.substr(0, space);
    joined += merge.substr(space + 1);
    const auto left = find(merge.substr(0, space));
    const auto right = find(merge.substr(space + 1));
    const auto merged = find(joined);
    if (!left || !right || !merged) {
      return invalid(
          kMergesKey,
          concat("merge ", i, ": expected texts of the vocabulary, found ", quote(merge)));
    }
    merges_.add(*left, *right, static_cast<int32_t>(i), *merged);
  }
  return {};
}

Status Tokenizer::read_special(const GgufFile& file) {
  const auto count = static_cast<size_t>(vocabulary_.size());
  std::optional<int32_t> eot;
  std::optional<int32_t> eom;
  PAVO_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.bos_token_id", count, &bos_));
  PAVO_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.eos_token_id", count, &eos_));
  PAVO_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.eot_token_id", count, &eot));
  PAVO_RETURN_IF_ERROR(read_id(file, "tokenizer.ggml.eom_token_id", count, &eom));
  // The rules that look whole pieces up are those of models that begin with a token by default.
  PAVO_ASSIGN_OR_RETURN(
      add_bos_, file.get_or<bool>("tokenizer.ggml.add_bos_token", pre_.prefers_whole_pieces()));
  PAVO_ASSIGN_OR_RETURN(add_eos_, file.get_or<bool>("tokenizer.ggml.add_eos_token", false));
  for (const auto& id : {eos_, eot, eom}) {
    if (id) {
      eog_.insert(*id);
    }
  }
  for (const std::string_view text : kEndTexts) {
    const auto id = find(text);
    if (id && is_control(*id)) {
      eog_.insert(*id);
    }
  }
  return {};
}

}  // namespace pavo::llm
