#include "tests/conformance/kit.h"

#include <chrono>
#include <exception>

#include "tests/conformance/checks.h"

namespace pavo::conformance {

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kPassed:
      return "passed";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kSkipped:
      return "skipped";
  }
  return "failed";
}

test::BackendConfig Context::config() const {
  test::BackendConfig config;
  config.path = options_.plugin;
  config.options = options_.options;
  config.label = "plugin";
  return config;
}

void Context::fault(const std::string& text) {
  if (faults_.size() == kMostFaults) {
    ++dropped_;
    return;
  }
  faults_.push_back(stage_.empty() ? text : stage_ + ": " + text);
}

CheckResult Context::take(const std::string& id) const {
  CheckResult result;
  result.id = id;
  result.faults = faults_;
  if (dropped_ > 0) {
    result.faults.push_back("and " + std::to_string(dropped_) + " more");
  }
  result.note = skip_reason_.empty() ? note_ : skip_reason_;
  result.outcome = !faults_.empty()        ? Outcome::kFailed
                   : !skip_reason_.empty() ? Outcome::kSkipped
                                           : Outcome::kPassed;
  return result;
}

std::vector<Check> all_checks() {
  std::vector<Check> checks;
  for (const std::vector<Check>& group :
       {file_checks(),
        load_checks(),
        instance_checks(),
        device_checks(),
        copy_checks(),
        predicate_checks(),
        truth_checks()}) {
    checks.insert(checks.end(), group.begin(), group.end());
  }
  return checks;
}

CheckResult run_check(const Check& check, Context& context) {
  const auto start = std::chrono::steady_clock::now();
  try {
    check.run(context);
  } catch (const std::exception& error) {
    context.fault(error.what());
  }
  CheckResult result = context.take(check.id);
  result.ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace pavo::conformance
