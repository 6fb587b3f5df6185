// Small text helpers that several parts need: splitting, numbers, the nearest of some names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pavo {

// Parts between separators, spaces at their ends removed; empty parts are dropped.
std::vector<std::string> split(std::string_view text, char separator);
std::string join(const std::vector<std::string>& parts, std::string_view separator);

// The whole text as a number, or nothing: no spaces, no rest, no overflow.
std::optional<int64_t> parse_int(std::string_view text);
std::optional<double> parse_double(std::string_view text);
// The shortest text that reads as the same number.
std::string format_double(double value);
// 1, true, on, yes and their opposites.
std::optional<bool> parse_bool(std::string_view text);

// The name that a misspelt one most likely meant; "" if none is near.
std::string nearest_name(std::string_view text, const std::vector<std::string>& names);

}  // namespace pavo
