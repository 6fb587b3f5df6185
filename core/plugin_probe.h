// The second of the three loading stages: pavo-probe tries a plugin in a process of its own, and
// what comes of it - an answer, a crash, silence - becomes a verdict. Never fails itself.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace pavo {

enum class ProbeOutcome : int32_t {
  kOk,        // loaded and answered; devices may still have faults of their own
  kFailed,    // answered that it does not work
  kCrashed,   // ended by a signal or by itself before it had answered
  kTimedOut,  // killed at the deadline
  kNotRun,    // the helper could not be started: nothing is known about the plugin
};

const char* probe_outcome_name(ProbeOutcome outcome);

struct ProbedDevice {
  std::string id;
  std::string name;
  std::string architecture;  // the cap "arch"; empty: the plugin does not say
  bool tested = false;
  std::string fault;  // one line; empty if the self-test passed or was not asked for
};

struct ProbeResult {
  ProbeOutcome outcome = ProbeOutcome::kNotRun;
  std::string text;                   // one line: what went wrong; empty if nothing did
  std::vector<std::string> warnings;  // rules that it breaks without harm so far
  std::vector<ProbedDevice> devices;
  std::string device_at_fault;  // id of the device in whose test it crashed or hung, if it was one
  bool cached = false;
};

struct ProbeRequest {
  std::filesystem::path program;     // empty: pavo-probe next to the running program
  std::filesystem::path plugin;      // absolute
  std::vector<std::string> devices;  // ids to test; empty: all that it lists
  bool no_devices = false;           // open none
  std::chrono::milliseconds timeout{5000};
};

// Blocks for as long as the child lives, at most the timeout. Any thread.
ProbeResult probe_plugin(const ProbeRequest& request);

}  // namespace pavo
