// Runs a helper program with nothing but three pipes, a deadline and a bound on what it may say.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/status.h"

namespace pavo {

struct ChildRequest {
  std::filesystem::path program;  // absolute
  std::vector<std::string> arguments;
  std::chrono::milliseconds timeout{5000};
  size_t max_bytes = 1 << 20;  // kept of each pipe; more is read and dropped
};

struct ChildOutcome {
  bool timed_out = false;  // it was killed at the deadline
  int signal = 0;          // that ended it; 0: none
  int exit_code = 0;       // if no signal did
  std::string standard_output;
  std::string standard_error;
  std::string result;  // what it wrote to kChildResultFd
};

inline constexpr int kChildResultFd = 3;

// Standard input is empty. The child leads a process group of its own, which is killed at the
// deadline. kIo if it cannot be started; what the child does is never an error of this function.
Result<ChildOutcome> run_child(const ChildRequest& request);

// "SIGTRAP" for 5.
std::string signal_name(int signal);

}  // namespace pavo
