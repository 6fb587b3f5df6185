// What a plugin may not change in the process that loads it.
#pragma once

#include <string>
#include <vector>

namespace pavo::conformance {

struct ProcessState {
  std::vector<const void*> signal_handlers;
  size_t threads = 0;
  std::vector<std::string> open_files;  // targets of /proc/self/fd
  std::string folder;
  std::string locale;
  std::vector<std::string> environment;
  unsigned floating_point = 0;  // rounding, flushing of denormals
  unsigned umask = 0;

  static ProcessState now();
};

// One line for each difference.
std::vector<std::string> changes(const ProcessState& before, const ProcessState& after);

// Ends the redirection of standard output and error that start() began and gives what was written.
class OutputCatcher {
 public:
  OutputCatcher();
  OutputCatcher(const OutputCatcher&) = delete;
  OutputCatcher& operator=(const OutputCatcher&) = delete;
  ~OutputCatcher();
  std::string stop();

 private:
  int file_;
  int saved_[2];
  bool stopped_ = false;
};

}  // namespace pavo::conformance
