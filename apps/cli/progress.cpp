#include "apps/cli/progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <unistd.h>

namespace pavo::cli {

Progress::Progress(std::string label, bool quiet)
    : label_(std::move(label)), enabled_(!quiet && isatty(STDERR_FILENO) == 1) {}

void Progress::update(int64_t done, int64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!enabled_ || total <= 0 || (shown_ && now - drawn_ < std::chrono::milliseconds(100))) {
    return;
  }
  constexpr int64_t kCells = 30;
  const int64_t filled = std::clamp<int64_t>(done * kCells / total, 0, kCells);
  const std::string bar = std::string(static_cast<size_t>(filled), '#') +
                          std::string(static_cast<size_t>(kCells - filled), '.');
  // Erases the line first: the previous one may have been longer.
  std::fprintf(
      stderr,
      "\r\033[K%s [%s] %lld/%lld",
      label_.c_str(),
      bar.c_str(),
      static_cast<long long>(done),
      static_cast<long long>(total));
  std::fflush(stderr);
  shown_ = true;
  drawn_ = now;
}

void Progress::clear() {
  if (shown_) {
    std::fputs("\r\033[K", stderr);
    std::fflush(stderr);
    shown_ = false;
  }
}

}  // namespace pavo::cli
