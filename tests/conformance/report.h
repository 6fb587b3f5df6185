// The results of a run, as text for people, as JSON and as JUnit's XML.
#pragma once

#include <string>
#include <vector>

#include "tests/conformance/kit.h"

namespace pavo::conformance {

struct Report {
  std::string plugin;  // path
  uint64_t seed = 0;
  std::vector<Check> checks;
  std::vector<CheckResult> results;  // same order

  size_t count(Outcome outcome) const;
};

std::string to_text(const Report& report, bool verbose);
std::string to_json(const Report& report);
std::string to_junit(const Report& report);

// The line of a child process that holds one result, and back; false if it is none.
std::string to_line(const CheckResult& result);
bool from_line(const std::string& line, CheckResult* result);

}  // namespace pavo::conformance
