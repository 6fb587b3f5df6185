// The trial itself: load, negotiate, make an instance, list the devices, test them.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace pavo::probe {

struct TrialRequest {
  std::filesystem::path plugin;      // absolute
  std::vector<std::string> devices;  // ids to test; empty: all
  bool no_devices = false;           // list them, but open none
};

// Gives each line of the answer (core/probe_protocol.h) to `write`, a stage before it begins.
void run_trial(const TrialRequest& request, const std::function<void(const std::string&)>& write);

}  // namespace pavo::probe
