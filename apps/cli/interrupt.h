// Ctrl-C while something long runs: the first asks for a clean stop, the second ends the program.
#pragma once

namespace pavo::cli {

// From construction to destruction SIGINT only raises a flag, once; a second SIGINT has its usual
// effect. One object at a time, on the main thread.
class InterruptScope {
 public:
  InterruptScope();
  ~InterruptScope();
  InterruptScope(const InterruptScope&) = delete;
  InterruptScope& operator=(const InterruptScope&) = delete;

  // Any thread.
  static bool requested();
};

}  // namespace pavo::cli
