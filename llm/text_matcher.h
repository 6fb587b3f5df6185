// Finds the texts of special tokens inside of a text.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace pavo::llm {

// Immutable after construction; the texts are viewed, not copied.
class TextMatcher {
 public:
  struct Match {
    size_t begin = 0;
    size_t length = 0;  // 0: nothing found
    int32_t id = -1;
  };

  TextMatcher() = default;
  // Empty texts are left out; of equal ones the lowest id counts.
  explicit TextMatcher(std::vector<std::pair<std::string_view, int32_t>> texts);

  // The first match at or behind `from`; of several that begin there the longest.
  Match find(std::string_view text, size_t from) const;

 private:
  Match match_at(std::string_view text, size_t begin) const;

  std::vector<std::pair<std::string_view, int32_t>> texts_;  // sorted
  std::array<bool, 256> is_first_byte_{};
};

}  // namespace pavo::llm
