// Runs checks, each in a process of its own: a crash, a hang or an exit of the plugin fails the
// check that it happened in.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>

#include "core/status.h"
#include "tests/conformance/kit.h"
#include "tests/conformance/report.h"

namespace pavo::conformance {

struct RunnerOptions {
  KitOptions kit;
  std::filesystem::path program;      // pavo-conformance; empty: the running program
  std::chrono::seconds timeout{300};  // of one check
  std::string filter;                 // checks whose id holds this text; empty: all
  // Called after each check, for progress.
  std::function<void(const CheckResult&)> on_result;
};

// kInvalidFile if the plugin is not a file that can be read.
Result<Report> run_all(const RunnerOptions& options);

// The other side: runs one check in this process and writes stages and the result to
// kChildResultFd. False if there is no such check.
bool run_as_child(const KitOptions& options, const std::string& id);

}  // namespace pavo::conformance
