#include "core/text.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <numeric>

namespace pavo {

namespace {

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) {
    return {};
  }
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

template <typename T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && rest == end && !text.empty() ? std::optional<T>(value)
                                                              : std::nullopt;
}

// Insertions, deletions and replacements that turn one text into the other.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, diagonal + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t begin = 0;
  while (begin <= text.size()) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    const std::string_view part = trimmed(text.substr(begin, end - begin));
    if (!part.empty()) {
      parts.emplace_back(part);
    }
    begin = end + 1;
  }
  return parts;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != parts.data()) {
      text += separator;
    }
    text += part;
  }
  return text;
}

std::optional<int64_t> parse_int(std::string_view text) {
  return parse_number<int64_t>(text);
}

std::optional<double> parse_double(std::string_view text) {
  return parse_number<double>(text);
}

std::string format_double(double value) {
  std::array<char, 32> buffer{};  // the shortest form of any double has at most 24 characters
  const auto [end, error] = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return error == std::errc() ? std::string(buffer.data(), end) : "?";
}

std::optional<bool> parse_bool(std::string_view text) {
  if (text == "1" || text == "true" || text == "on" || text == "yes") {
    return true;
  }
  if (text == "0" || text == "false" || text == "off" || text == "no") {
    return false;
  }
  return std::nullopt;
}

std::string nearest_name(std::string_view text, const std::vector<std::string>& names) {
  std::string nearest;
  // Two slips, or one in three letters of a long name, still look like the name.
  size_t best = std::max<size_t>(2, text.size() / 3) + 1;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(text, name);
    if (distance < best && distance < name.size()) {
      best = distance;
      nearest = name;
    }
  }
  return nearest;
}

}  // namespace pavo
