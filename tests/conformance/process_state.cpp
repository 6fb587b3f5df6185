#include "tests/conformance/process_state.h"

#include <algorithm>
#include <array>
#include <clocale>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iterator>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace pavo::conformance {
namespace {

namespace fs = std::filesystem;

constexpr int kSignals = 64;

unsigned floating_point_state() {
#if defined(__SSE__)
  constexpr unsigned kFlags = 0x3f;  // what operations have raised
  return _mm_getcsr() & ~kFlags;
#else
  return 0;
#endif
}

std::vector<std::string> list_open_files() {
  std::vector<std::string> files;
  std::error_code error;
  for (fs::directory_iterator it("/proc/self/fd", error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    std::error_code ignored;
    const fs::path target = fs::read_symlink(it->path(), ignored);
    if (target.string().find("/proc/") != 0) {  // the listing's own
      files.push_back(it->path().filename().string() + " " + target.string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

size_t thread_count() {
  std::error_code error;
  const fs::directory_iterator tasks("/proc/self/task", error);
  return error ? 1 : static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

unsigned current_umask() {
  const mode_t mask = ::umask(0);
  ::umask(mask);
  return mask;
}

}  // namespace

ProcessState ProcessState::now() {
  ProcessState state;
  for (int i = 1; i <= kSignals; ++i) {
    struct sigaction action = {};
    ::sigaction(i, nullptr, &action);
    state.signal_handlers.push_back(reinterpret_cast<const void*>(action.sa_handler));
  }
  state.threads = thread_count();
  state.open_files = list_open_files();
  std::error_code ignored;
  state.folder = fs::current_path(ignored).string();
  state.locale = std::setlocale(LC_ALL, nullptr);
  for (char** entry = environ; *entry != nullptr; ++entry) {
    state.environment.emplace_back(*entry);
  }
  std::sort(state.environment.begin(), state.environment.end());
  state.floating_point = floating_point_state();
  state.umask = current_umask();
  return state;
}

std::vector<std::string> changes(const ProcessState& before, const ProcessState& after) {
  std::vector<std::string> lines;
  for (size_t i = 0; i < before.signal_handlers.size(); ++i) {
    if (before.signal_handlers[i] != after.signal_handlers[i]) {
      lines.push_back("expected no signal handler, found one for signal " + std::to_string(i + 1));
    }
  }
  if (after.threads > before.threads) {
    lines.push_back(
        "expected " + std::to_string(before.threads) + " threads, found " +
        std::to_string(after.threads));
  }
  for (const std::string& file : after.open_files) {
    if (!std::binary_search(before.open_files.begin(), before.open_files.end(), file)) {
      lines.push_back("expected no open file, found " + file);
    }
  }
  const auto same = [&](bool equal, const char* what) {
    if (!equal) {
      lines.push_back(std::string("expected ") + what + " to stay as it was");
    }
  };
  same(before.folder == after.folder, "the current directory");
  same(before.locale == after.locale, "the locale");
  same(before.environment == after.environment, "the environment");
  same(before.umask == after.umask, "the umask");
  same(
      before.floating_point == after.floating_point,
      "the floating-point mode (a library built with -ffast-math flushes denormals)");
  return lines;
}

OutputCatcher::OutputCatcher()
    : file_(::memfd_create("output", MFD_CLOEXEC)),
      saved_{::dup(STDOUT_FILENO), ::dup(STDERR_FILENO)} {
  std::fflush(stdout);
  ::dup2(file_, STDOUT_FILENO);
  ::dup2(file_, STDERR_FILENO);
}

OutputCatcher::~OutputCatcher() {
  stop();
  ::close(file_);
}

std::string OutputCatcher::stop() {
  if (stopped_) {
    return {};
  }
  stopped_ = true;
  std::fflush(stdout);
  ::dup2(saved_[0], STDOUT_FILENO);
  ::dup2(saved_[1], STDERR_FILENO);
  ::close(saved_[0]);
  ::close(saved_[1]);
  std::array<char, 200> text = {};
  const ssize_t size = ::pread(file_, text.data(), text.size(), 0);
  return std::string(text.data(), size > 0 ? static_cast<size_t>(size) : 0);
}

}  // namespace pavo::conformance
