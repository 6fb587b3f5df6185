#include "llm/vocabulary.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "llm/byte_alphabet.h"

namespace pavo::llm {

Vocabulary::Vocabulary(std::span<const std::string_view> texts, std::span<const TokenKind> kinds)
    : slots_(std::bit_ceil(2 * texts.size() + 1), -1) {
  text_ends_.reserve(texts.size());
  byte_ends_.reserve(texts.size());
  kinds_.assign(texts.size(), TokenKind::kNormal);
  std::copy(kinds.begin(), kinds.end(), kinds_.begin());
  for (size_t i = 0; i < texts.size(); ++i) {
    texts_ += texts[i];
    text_ends_.push_back(static_cast<uint32_t>(texts_.size()));
    const bool is_literal =
        kinds_[i] == TokenKind::kControl || kinds_[i] == TokenKind::kUserDefined;
    if (is_literal || !append_from_byte_alphabet(texts[i], &bytes_)) {
      bytes_ += texts[i];
    }
    byte_ends_.push_back(static_cast<uint32_t>(bytes_.size()));
    int32_t& slot = slots_[slot_of(texts[i])];
    slot = slot < 0 ? static_cast<int32_t>(i) : slot;
  }
}

size_t Vocabulary::slot_of(std::string_view wanted) const {
  const size_t mask = slots_.size() - 1;
  size_t slot = std::hash<std::string_view>()(wanted) & mask;
  while (slots_[slot] >= 0 && text(slots_[slot]) != wanted) {
    slot = (slot + 1) & mask;
  }
  return slot;
}

std::optional<int32_t> Vocabulary::find(std::string_view text) const {
  if (slots_.empty()) {
    return std::nullopt;
  }
  const int32_t id = slots_[slot_of(text)];
  return id < 0 ? std::nullopt : std::optional(id);
}

}  // namespace pavo::llm
