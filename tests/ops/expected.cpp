#include "tests/ops/expected.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace pavo::test {
namespace {

constexpr int64_t kMostLines = 5;

bool matches(double got, double value, double tolerance) {
  if (std::isfinite(value)) {
    return std::fabs(got - value) <= tolerance;
  }
  return std::isnan(value) ? std::isnan(got) : got == value;
}

// The bytes that belong to no element.
bool gaps_intact(const HostTensor& before, const HostTensor& after) {
  std::vector<std::byte> wanted = before.bytes;
  for (int64_t i = 0; i < after.elements(); ++i) {
    const int64_t offset = after.offset(i);
    std::copy_n(after.bytes.begin() + offset, sizeof(float), wanted.begin() + offset);
  }
  return wanted == after.bytes;
}

}  // namespace

std::vector<std::string> compare_output(
    const HostTensor& before, const HostTensor& after, const Expected& expected) {
  std::vector<std::string> lines;
  const int64_t count = after.elements();
  if (count != static_cast<int64_t>(expected.values.size())) {
    return {
        "expected " + std::to_string(expected.values.size()) + " values, got " +
        std::to_string(count)};
  }
  int64_t wrong = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double value = expected.values[static_cast<size_t>(i)];
    const double tolerance = expected.tolerances[static_cast<size_t>(i)];
    const auto got = static_cast<double>(after.at(i));
    if (!matches(got, value, tolerance) && ++wrong <= kMostLines) {
      std::ostringstream line;
      line << "element " << i << ": expected " << value << " +- " << tolerance << ", got " << got;
      lines.push_back(line.str());
    }
  }
  if (wrong > 0) {
    lines.push_back(std::to_string(wrong) + " of " + std::to_string(count) + " elements are wrong");
  }
  if (!gaps_intact(before, after)) {
    lines.emplace_back("bytes between the rows of an output were written");
  }
  return lines;
}

}  // namespace pavo::test
