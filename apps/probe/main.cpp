// pavo-probe: tries one plugin in a process of its own, so that whatever the plugin does cannot
// hurt the program that wants to use it. The contract is core/probe_protocol.h.
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "apps/probe/trial.h"
#include "core/probe_protocol.h"

namespace {

using namespace pavo;  // NOLINT(google-build-using-namespace): this file is a program

constexpr int kExitUsage = 2;

struct Arguments {
  int result_fd = -1;
  probe::TrialRequest trial;
};

bool parse(int argc, char** argv, Arguments* out) {
  std::string plugin;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const bool more = i + 1 < argc;
    if (argument == probe::kOptionResultFd && more) {
      out->result_fd = std::atoi(argv[++i]);
    } else if (argument == probe::kOptionDevice && more) {
      out->trial.devices.emplace_back(argv[++i]);
    } else if (argument == probe::kOptionNoDevices) {
      out->trial.no_devices = true;
    } else if (plugin.empty() && !argument.starts_with("--")) {
      plugin = argument;
    } else {
      return false;
    }
  }
  out->trial.plugin = plugin;
  return !plugin.empty() && out->trial.plugin.is_absolute();
}

// Leaves nothing open but the three standard streams and the result pipe, which gets a number that
// a plugin does not hit by chance and does not reach the plugin's own children.
int prepare_fds(int result_fd) {
  constexpr int kFarAway = 100;
  const bool by_hand = result_fd < 0;
  const int result = ::fcntl(by_hand ? STDOUT_FILENO : result_fd, F_DUPFD_CLOEXEC, kFarAway);
  if (by_hand) {
    // The answer keeps standard output for itself.
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
  }
  if (result >= 0) {
    ::syscall(SYS_close_range, STDERR_FILENO + 1, result - 1, 0);
    ::syscall(SYS_close_range, result + 1, ~0U, 0);
  }
  return result;
}

void prepare_process() {
  // Dies with the program that asked.
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // 1, not 0: handlers that take core dumps through a pipe ignore 0.
  const rlimit limit = {1, 1};
  ::setrlimit(RLIMIT_CORE, &limit);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
}

void write_line(int fd, const std::string& line) {
  const std::string text = line + "\n";
  size_t at = 0;
  while (at < text.size()) {
    const ssize_t put = ::write(fd, text.data() + at, text.size() - at);
    if (put < 0 && errno != EINTR) {
      std::_Exit(EXIT_FAILURE);  // nobody listens any more
    }
    at += put > 0 ? static_cast<size_t>(put) : 0;
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  if (!parse(argc, argv, &arguments)) {
    std::fputs(
        "usage: pavo-probe [--result-fd N] [--no-devices | --device ID ...] /ABSOLUTE/PLUGIN.so\n"
        "Tries a plugin in this process and prints what it found as JSON, one object a line.\n",
        stderr);
    return kExitUsage;
  }
  prepare_process();
  const int result = prepare_fds(arguments.result_fd);
  if (result < 0) {
    std::perror("pavo-probe: the result pipe");
    return kExitUsage;
  }
  probe::run_trial(arguments.trial, [&](const std::string& line) { write_line(result, line); });
  // An ordinary end, so that a plugin that crashes then is caught too.
  return EXIT_SUCCESS;
}
