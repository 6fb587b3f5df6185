// The conformance kit: what a plugin must do (docs/conformance.md), as checks that any plugin can
// be put through. Each check runs in a process of its own (runner.h), so a plugin that crashes or
// hangs fails one check.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/ops/backend.h"

namespace pavo::conformance {

struct KitOptions {
  std::string plugin;                          // absolute path
  std::map<std::string, std::string> options;  // of the plugin, as text
  std::string profile;                         // file with caps of a card that is not there
  uint64_t seed = 20261130;
};

enum class Outcome : int32_t { kPassed, kFailed, kSkipped };

const char* outcome_name(Outcome outcome);

struct CheckResult {
  std::string id;
  Outcome outcome = Outcome::kPassed;
  std::vector<std::string> faults;  // one line each: expected, found
  std::string note;                 // why it was skipped, or what was covered
  double ms = 0;
};

// What a check is given, and where it says what it found.
class Context {
 public:
  // tell_stage is called before each step that may crash.
  Context(const KitOptions& options, std::function<void(const std::string&)> tell_stage)
      : options_(options), tell_stage_(std::move(tell_stage)) {}

  const KitOptions& options() const { return options_; }
  test::BackendConfig config() const;

  void stage(const std::string& text) {
    stage_ = text;
    tell_stage_(text);
  }
  // The stage is put before the text. At most kMostFaults are kept; the rest is counted.
  void fault(const std::string& text);
  bool expect(bool holds, const std::string& text) {
    if (!holds) {
      fault(text);
    }
    return holds;
  }
  void skip(const std::string& reason) { skip_reason_ = reason; }
  void note(const std::string& text) { note_ = text; }
  bool failed() const { return !faults_.empty(); }
  // More would not be kept: a check that takes long may end.
  bool enough() const { return faults_.size() == kMostFaults; }

  CheckResult take(const std::string& id) const;

 private:
  static constexpr size_t kMostFaults = 20;

  const KitOptions& options_;
  std::function<void(const std::string&)> tell_stage_;
  std::string stage_;
  std::vector<std::string> faults_;
  size_t dropped_ = 0;
  std::string skip_reason_;
  std::string note_;
};

struct Check {
  std::string id;    // "L1.copy"; the level comes first
  std::string rule;  // one line: what must hold
  std::function<void(Context& context)> run;
};

// In the order in which they are run.
std::vector<Check> all_checks();

// Runs one check in this process; an exception is a fault.
CheckResult run_check(const Check& check, Context& context);

}  // namespace pavo::conformance
