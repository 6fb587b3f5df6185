#include "llm/tokenizer.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "llm/byte_alphabet.h"
#include "llm/message.h"
#include "llm/model_file.h"
#include "llm/utf8.h"

namespace pavo::llm {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD

}  // namespace

// One encode(): the ids so far, and scratch memory.
struct Tokenizer::Encoding {
  explicit Encoding(const MergeTable& merges) : merger(merges) {}

  std::vector<int32_t> ids;
  size_t dropped_bytes = 0;
  BpeMerger merger;
  std::vector<int32_t> piece;
};

Result<Tokenizer> Tokenizer::load(const ModelSource& source) {
  if (source.gguf() != nullptr) {
    return from_gguf(*source.gguf());
  }
  return Status(
      Code::kUnsupported,
      "tokenizer: expected a GGUF file with its vocabulary, found a Hub directory, whose "
      "tokenizer.json is not read yet; give token ids instead of text");
}

Result<std::vector<int32_t>> Tokenizer::encode(
    std::string_view text, EncodeOptions options, size_t* dropped_bytes) const {
  constexpr size_t kMaxBytes = std::numeric_limits<int32_t>::max();
  if (text.size() > kMaxBytes) {
    return Status(
        Code::kInvalidArgument,
        concat("tokenizer: expected at most ", kMaxBytes, " bytes, found ", text.size()));
  }
  Encoding out(merges_);
  if (options.add_special && add_bos_ && bos_) {
    out.ids.push_back(*bos_);
  }
  const TextMatcher& special = options.parse_special ? all_special_ : user_defined_;
  size_t done = 0;
  while (done < text.size()) {
    const TextMatcher::Match match = special.find(text, done);
    if (match.length == 0) {
      break;
    }
    PAVO_RETURN_IF_ERROR(encode_text(text.substr(done, match.begin - done), &out));
    out.ids.push_back(match.id);
    done = match.begin + match.length;
  }
  PAVO_RETURN_IF_ERROR(encode_text(text.substr(done), &out));
  if (options.add_special && add_eos_ && eos_) {
    out.ids.push_back(*eos_);
  }
  if (dropped_bytes != nullptr) {
    *dropped_bytes = out.dropped_bytes;
  }
  return std::move(out.ids);
}

// Runs of valid and of invalid UTF-8 take turns.
Status Tokenizer::encode_text(std::string_view text, Encoding* out) const {
  size_t begin = 0;
  while (begin < text.size()) {
    const bool valid = next_utf8(text.substr(begin)).kind == Utf8Kind::kValid;
    size_t end = begin;
    while (end < text.size()) {
      const Utf8Step step = next_utf8(text.substr(end));
      if ((step.kind == Utf8Kind::kValid) != valid) {
        break;
      }
      end += step.length;
    }
    const std::string_view run = text.substr(begin, end - begin);
    if (valid) {
      PAVO_RETURN_IF_ERROR(
          pre_.split(run, [&](std::string_view piece) { encode_piece(piece, out); }));
    } else {
      encode_piece(run, out);
    }
    begin = end;
  }
  return {};
}

void Tokenizer::encode_piece(std::string_view piece, Encoding* out) const {
  if (pre_.prefers_whole_pieces()) {
    const auto whole = find(to_byte_alphabet(piece));
    if (whole && vocabulary_.kind(*whole) == TokenKind::kNormal) {
      out->ids.push_back(*whole);
      return;
    }
  }
  out->piece.clear();
  for (const char byte : piece) {
    const int32_t token = byte_tokens_[static_cast<unsigned char>(byte)];
    if (token >= 0) {
      out->piece.push_back(token);
    } else {
      ++out->dropped_bytes;
    }
  }
  out->merger.merge(&out->piece);
  out->ids.insert(out->ids.end(), out->piece.begin(), out->piece.end());
}

std::string_view Tokenizer::bytes(int32_t id) const {
  const bool known = id >= 0 && id < vocab_size();
  return known ? vocabulary_.bytes(id) : std::string_view();
}

std::string Tokenizer::decode(std::span<const int32_t> ids, bool with_control) const {
  std::string out;
  for (const int32_t id : ids) {
    if (with_control || !is_control(id)) {
      out += bytes(id);
    }
  }
  return out;
}

bool Tokenizer::is_control(int32_t id) const {
  return id >= 0 && id < vocab_size() && vocabulary_.kind(id) == TokenKind::kControl;
}

std::string StreamDecoder::next(int32_t id) {
  if (with_control_ || !tokenizer_.is_control(id)) {
    pending_ += tokenizer_.bytes(id);
  }
  return take_complete();
}

std::string StreamDecoder::take_complete() {
  std::string out;
  size_t done = 0;
  while (done < pending_.size()) {
    const std::string_view rest = std::string_view(pending_).substr(done);
    const Utf8Step step = next_utf8(rest);
    if (step.kind == Utf8Kind::kIncomplete) {
      break;
    }
    out += step.kind == Utf8Kind::kValid ? rest.substr(0, step.length) : kReplacement;
    done += step.length;
  }
  pending_.erase(0, done);
  return out;
}

std::string StreamDecoder::finish() {
  const bool held = !pending_.empty();
  pending_.clear();
  return held ? std::string(kReplacement) : std::string();
}

}  // namespace pavo::llm
