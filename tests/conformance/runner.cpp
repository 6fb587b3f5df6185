#include "tests/conformance/runner.h"

#include <algorithm>
#include <sstream>
#include <utility>

#include <unistd.h>

#include "core/child_process.h"
#include "core/host_api.h"
#include "core/system.h"

namespace pavo::conformance {
namespace {

constexpr char kStage = '@';  // first byte of a line that tells a stage

void write_line(const std::string& line) {
  const std::string text = line + "\n";
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t put = ::write(kChildResultFd, text.data() + at, text.size() - at);
    if (put <= 0) {
      return;
    }
    at += static_cast<size_t>(put);
  }
}

std::vector<std::string> arguments_of(const RunnerOptions& options, const std::string& id) {
  std::vector<std::string> arguments = {"--one", id, "--seed", std::to_string(options.kit.seed)};
  for (const auto& [key, value] : options.kit.options) {
    arguments.emplace_back("--plugin-option");
    arguments.push_back(key + "=" + value);
  }
  if (!options.kit.profile.empty()) {
    arguments.emplace_back("--device-profile");
    arguments.push_back(options.kit.profile);
  }
  arguments.push_back(options.kit.plugin);
  return arguments;
}

// How a child ended that left no result.
std::string end_of(const ChildOutcome& child, std::chrono::seconds timeout) {
  if (child.timed_out) {
    return "it did not end within " + std::to_string(timeout.count()) + " s";
  }
  if (child.signal != 0) {
    return "it crashed with " + signal_name(child.signal);
  }
  return "it ended the process with exit code " + std::to_string(child.exit_code);
}

std::string last_line(const std::string& text) {
  const size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) {
    return {};
  }
  const size_t begin = text.find_last_of('\n', end);
  return printable(text.substr(begin == std::string::npos ? 0 : begin + 1, 300), 300);
}

CheckResult judge(const std::string& id, const ChildOutcome& child, std::chrono::seconds timeout) {
  CheckResult result;
  std::string stage;
  bool answered = false;
  std::istringstream lines(child.result);
  for (std::string line; std::getline(lines, line);) {
    if (!line.empty() && line[0] == kStage) {
      stage = line.substr(1);
    } else {
      answered = from_line(line, &result) && result.id == id;
    }
  }
  const auto fail = [&](const std::string& text) {
    result.faults.push_back(text);
    result.outcome = Outcome::kFailed;
  };
  result.id = id;
  if (!answered) {
    const std::string words = last_line(child.standard_error);
    fail(
        (stage.empty() ? "" : stage + ": ") + end_of(child, timeout) +
        (words.empty() ? "" : "; it said: " + words));
  } else if (child.signal != 0 || child.timed_out || child.exit_code != 0) {
    fail("expected the process to end well afterwards; " + end_of(child, timeout));
  }
  if (!child.standard_output.empty()) {
    fail("expected no output, found: " + printable(child.standard_output, 80));
  }
  return result;
}

}  // namespace

Result<Report> run_all(const RunnerOptions& options) {
  if (::access(options.kit.plugin.c_str(), R_OK) != 0) {
    return Status(
        Code::kInvalidFile, options.kit.plugin + ": expected a plugin file, found none to read");
  }
  Report report;
  report.plugin = options.kit.plugin;
  report.seed = options.kit.seed;
  for (Check& check : all_checks()) {
    if (check.id.find(options.filter) == std::string::npos) {
      continue;
    }
    ChildRequest request;
    request.program = options.program.empty() ? executable_path() : options.program;
    request.arguments = arguments_of(options, check.id);
    request.timeout = options.timeout;
    request.max_bytes = 64 << 20;
    const Result<ChildOutcome> child = run_child(request);
    if (!child.ok()) {
      return child.status();
    }
    report.results.push_back(judge(check.id, *child, options.timeout));
    report.checks.push_back(std::move(check));
    if (options.on_result) {
      options.on_result(report.results.back());
    }
  }
  if (report.results.empty()) {
    return Status(Code::kInvalidArgument, "no check is called '" + options.filter + "'");
  }
  return report;
}

bool run_as_child(const KitOptions& options, const std::string& id) {
  for (const Check& check : all_checks()) {
    if (check.id == id) {
      Context context(
          options, [](const std::string& stage) { write_line(kStage + printable(stage, 300)); });
      write_line(to_line(run_check(check, context)));
      return true;
    }
  }
  return false;
}

}  // namespace pavo::conformance
