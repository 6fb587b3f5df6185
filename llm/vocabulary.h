// The tokens of a byte-level vocabulary: texts, the bytes they stand for, kinds, and ids by text.
// Packed into few allocations, since there are up to some hundred thousand tokens and the first
// answer waits for them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pavo::llm {

// As in tokenizer.ggml.token_type.
enum class TokenKind : uint8_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// Immutable after construction, so any thread may read it. Views hold as long as the object, moves
// included.
class Vocabulary {
 public:
  Vocabulary() = default;
  // As many kinds as texts, or none if all tokens are normal. At most 2^24 tokens and 2^32 - 1
  // bytes of text. Control and user-defined tokens, and texts that the byte alphabet cannot write,
  // stand for themselves.
  Vocabulary(std::span<const std::string_view> texts, std::span<const TokenKind> kinds);

  int32_t size() const { return static_cast<int32_t>(kinds_.size()); }
  // The id must be in 0 .. size() - 1 for these three.
  std::string_view text(int32_t id) const { return slice(texts_, text_ends_, id); }
  std::string_view bytes(int32_t id) const { return slice(bytes_, byte_ends_, id); }
  TokenKind kind(int32_t id) const { return kinds_[static_cast<size_t>(id)]; }

  // The lowest id with this text.
  std::optional<int32_t> find(std::string_view text) const;

 private:
  static std::string_view slice(
      const std::string& pool, const std::vector<uint32_t>& ends, int32_t id) {
    const uint32_t begin = id == 0 ? 0 : ends[static_cast<size_t>(id) - 1];
    return std::string_view(pool).substr(begin, ends[static_cast<size_t>(id)] - begin);
  }
  // Where the text is or would be in slots_, which is not empty.
  size_t slot_of(std::string_view text) const;

  std::string texts_;
  std::string bytes_;
  std::vector<uint32_t> text_ends_;
  std::vector<uint32_t> byte_ends_;
  std::vector<TokenKind> kinds_;
  std::vector<int32_t> slots_;  // hash table of ids, open addressing, at most half full; -1: free
};

}  // namespace pavo::llm
