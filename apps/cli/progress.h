// A progress bar on standard error, if that is a terminal; nothing in a pipe or a file.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace pavo::cli {

class Progress {
 public:
  // label: "prompt". A quiet bar never shows.
  explicit Progress(std::string label, bool quiet = false);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Redraws at most a few times a second.
  void update(int64_t done, int64_t total);
  // Takes the bar away, so that other text can follow.
  void clear();

 private:
  std::string label_;
  bool enabled_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point drawn_;
};

}  // namespace pavo::cli
