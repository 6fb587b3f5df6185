// Text to token ids and back, for byte-level BPE vocabularies (tokenizer.ggml.model "gpt2").
//
// Any bytes may be encoded. Valid UTF-8 goes through the vocabulary's splitting rule; a run of
// bytes that is no UTF-8 is a piece of its own, so it never joins with text, and decodes to the
// same bytes. A byte that the vocabulary has no token for (some lack control characters) is
// dropped, as the original tokenizers do; encode() counts them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "core/status.h"
#include "llm/bpe.h"
#include "llm/pretokenizer.h"
#include "llm/text_matcher.h"
#include "llm/vocabulary.h"

namespace pavo::llm {

class GgufFile;
class ModelSource;

struct EncodeOptions {
  // Adds the begin and end tokens that the model asks for (add_bos_token, add_eos_token).
  bool add_special = false;
  // Reads the texts of control tokens ("<|im_start|>") as those tokens. Leave it off for text of
  // strangers. User-defined tokens are always read: they are ordinary text to the model.
  bool parse_special = false;
};

// Owns all it needs; movable. Immutable, so any thread may use it.
class Tokenizer {
 public:
  // kInvalidFile names the key; kUnsupported for another kind of vocabulary, an unknown
  // pre-tokenizer or a Hub directory (whose tokenizer.json is not read yet).
  static Result<Tokenizer> load(const ModelSource& source);
  static Result<Tokenizer> from_gguf(const GgufFile& file);

  // kInvalidArgument for more than 2^31 - 1 bytes. *dropped_bytes, if given, is set to the number
  // of bytes that the vocabulary cannot express.
  Result<std::vector<int32_t>> encode(
      std::string_view text, EncodeOptions options = {}, size_t* dropped_bytes = nullptr) const;

  // The bytes of all tokens, one after the other; control tokens only if asked for. They need not
  // be valid UTF-8. Ids out of range give nothing.
  std::string decode(std::span<const int32_t> ids, bool with_control = false) const;
  // What one token stands for; a control token's is its own text. Empty for an id out of range.
  std::string_view bytes(int32_t id) const;

  int32_t vocab_size() const { return vocabulary_.size(); }
  // The id of a token by its text as the vocabulary writes it ("<|im_end|>", "\u0120the").
  std::optional<int32_t> find(std::string_view text) const { return vocabulary_.find(text); }
  bool is_control(int32_t id) const;
  // The model ends its answer with one of these.
  bool is_eog(int32_t id) const { return eog_.count(id) != 0; }
  std::optional<int32_t> bos() const { return bos_; }
  std::optional<int32_t> eos() const { return eos_; }
  bool adds_bos() const { return add_bos_; }
  bool adds_eos() const { return add_eos_; }

 private:
  struct Encoding;

  Status read_tokens(const GgufFile& file);
  Status read_merges(const GgufFile& file);
  Status read_special(const GgufFile& file);
  void index_tokens();

  Status encode_text(std::string_view text, Encoding* out) const;
  void encode_piece(std::string_view piece, Encoding* out) const;

  Vocabulary vocabulary_;
  std::array<int32_t, 256> byte_tokens_{};  // -1: no such token
  MergeTable merges_;
  PreTokenizer pre_;
  TextMatcher user_defined_;
  TextMatcher all_special_;  // user-defined and control
  std::unordered_set<int32_t> eog_;
  std::optional<int32_t> bos_;
  std::optional<int32_t> eos_;
  bool add_bos_ = false;
  bool add_eos_ = false;
};

// Text as it streams out, always whole UTF-8: a character whose bytes are spread over tokens is
// held back until it is complete, bytes that are no UTF-8 become U+FFFD. One thread at a time.
class StreamDecoder {
 public:
  // The tokenizer must outlive it.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool with_control = false)
      : tokenizer_(tokenizer), with_control_(with_control) {}

  // What can be shown after this token; may be empty.
  std::string next(int32_t id);
  // What is held back, at the end: U+FFFD for a character that was never completed.
  std::string finish();

 private:
  std::string take_complete();

  const Tokenizer& tokenizer_;
  bool with_control_;
  std::string pending_;
};

}  // namespace pavo::llm
