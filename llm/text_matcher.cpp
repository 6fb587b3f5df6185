#include "llm/text_matcher.h"

#include <algorithm>

namespace pavo::llm {

TextMatcher::TextMatcher(std::vector<std::pair<std::string_view, int32_t>> texts)
    : texts_(std::move(texts)) {
  std::erase_if(texts_, [](const auto& text) { return text.first.empty(); });
  std::sort(texts_.begin(), texts_.end());
  for (const auto& [text, id] : texts_) {
    is_first_byte_[static_cast<unsigned char>(text.front())] = true;
  }
}

TextMatcher::Match TextMatcher::find(std::string_view text, size_t from) const {
  for (size_t i = from; i < text.size(); ++i) {
    if (is_first_byte_[static_cast<unsigned char>(text[i])]) {
      const Match match = match_at(text, i);
      if (match.length > 0) {
        return match;
      }
    }
  }
  return {};
}

// Narrows the sorted texts byte by byte to those that the text continues with; a text that ends
// exactly there comes first in its range.
TextMatcher::Match TextMatcher::match_at(std::string_view text, size_t begin) const {
  Match best;
  auto low = texts_.begin();
  auto high = texts_.end();
  for (size_t depth = 0; begin + depth < text.size(); ++depth) {
    const auto wanted = static_cast<unsigned char>(text[begin + depth]);
    const auto byte_of = [&](const auto& item) {
      return static_cast<unsigned char>(item.first[depth]);
    };
    low = std::partition_point(low, high, [&](const auto& item) {
      return item.first.size() <= depth || byte_of(item) < wanted;
    });
    high =
        std::partition_point(low, high, [&](const auto& item) { return byte_of(item) == wanted; });
    if (low == high) {
      break;
    }
    if (low->first.size() == depth + 1) {
      best = {begin, depth + 1, low->second};
    }
  }
  return best;
}

}  // namespace pavo::llm
