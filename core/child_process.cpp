#include "core/child_process.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pavo {
namespace {

using Clock = std::chrono::steady_clock;

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() { reset(); }

  int get() const { return fd_; }
  void reset() {
    if (fd_ >= 0) {
      ::close(std::exchange(fd_, -1));
    }
  }

 private:
  int fd_ = -1;
};

Status system_error(const std::string& what, int error) {
  return Status(Code::kIo, what + ": " + std::strerror(error));
}

// One pipe from the child to this process.
struct Stream {
  Fd read_end;
  Fd write_end;
  int child_fd = -1;
  std::string* text = nullptr;
  size_t max_bytes = 0;

  Status open() {
    std::array<int, 2> ends = {-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
      return system_error("cannot make a pipe", errno);
    }
    read_end = Fd(ends[0]);
    // Above the numbers that the child's ends get, so that no dup2 overwrites another pipe.
    write_end = Fd(::fcntl(ends[1], F_DUPFD_CLOEXEC, 16));
    ::close(ends[1]);
    ::fcntl(read_end.get(), F_SETFL, O_NONBLOCK);
    return write_end.get() < 0 ? system_error("cannot make a pipe", errno) : Status();
  }

  // Reads what is there; closes the pipe at its end.
  void drain() {
    std::array<char, 4096> buffer = {};
    // A child that never stops talking must not keep this loop from looking at the clock.
    for (int round = 0; round < 64 && read_end.get() >= 0; ++round) {
      const ssize_t got = ::read(read_end.get(), buffer.data(), buffer.size());
      if (got > 0) {
        const size_t room = max_bytes - std::min(max_bytes, text->size());
        text->append(buffer.data(), std::min(room, static_cast<size_t>(got)));
      } else if (got == 0) {
        read_end.reset();
      } else if (errno != EINTR) {
        return;
      }
    }
  }
};

class Child {
 public:
  Status start(const ChildRequest& request, std::vector<Stream>* streams) {
    posix_spawn_file_actions_t actions = {};
    posix_spawnattr_t attributes = {};
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    for (const Stream& stream : *streams) {
      posix_spawn_file_actions_adddup2(&actions, stream.write_end.get(), stream.child_fd);
    }
    // The child starts with no signal blocked, ignored or handled, whatever this process does.
    sigset_t none = {};
    sigset_t all = {};
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
    std::vector<char*> arguments;
    std::string program = request.program.string();
    arguments.push_back(program.data());
    std::vector<std::string> copies = request.arguments;
    for (std::string& argument : copies) {
      arguments.push_back(argument.data());
    }
    arguments.push_back(nullptr);
    const int error =
        ::posix_spawn(&pid_, program.c_str(), &actions, &attributes, arguments.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
    for (Stream& stream : *streams) {
      stream.write_end.reset();
    }
    if (error != 0) {
      return system_error("cannot run " + program, error);
    }
    // Tells of the child's end through poll. Old kernels lack it: then poll wakes up now and then.
    pid_fd_ = Fd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
    return Status();
  }

  // Follows the child to its end or the deadline.
  void follow(Clock::time_point deadline, std::vector<Stream>* streams, ChildOutcome* outcome) {
    int status = 0;
    while (!reap(&status)) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
      if (left < 0) {
        outcome->timed_out = true;
        // The whole group, else a grandchild would live on.
        ::kill(-pid_, SIGKILL);
        ::kill(pid_, SIGKILL);
        wait(&status);
        break;
      }
      poll_once(static_cast<int>(std::min<int64_t>(left + 1, kMaxPollMs)), streams);
    }
    for (Stream& stream : *streams) {
      stream.drain();
    }
    outcome->signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    outcome->exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  }

 private:
  static constexpr int kMaxPollMs = 100;

  void poll_once(int wait_ms, std::vector<Stream>* streams) {
    std::vector<pollfd> fds;
    for (const Stream& stream : *streams) {
      fds.push_back({stream.read_end.get(), POLLIN, 0});
    }
    fds.push_back({pid_fd_.get(), POLLIN, 0});
    ::poll(fds.data(), fds.size(), pid_fd_.get() < 0 ? std::min(wait_ms, 5) : wait_ms);
    for (Stream& stream : *streams) {
      stream.drain();
    }
  }

  // A host that ignores SIGCHLD has no status to collect: then the end looks like exit code 0.
  bool reap(int* status) {
    const pid_t got = ::waitpid(pid_, status, WNOHANG);
    return got == pid_ || (got < 0 && errno != EINTR);
  }

  void wait(int* status) {
    while (::waitpid(pid_, status, 0) < 0 && errno == EINTR) {
    }
  }

  pid_t pid_ = -1;
  Fd pid_fd_;
};

}  // namespace

Result<ChildOutcome> run_child(const ChildRequest& request) {
  ChildOutcome outcome;
  const std::pair<int, std::string*> targets[] = {
      {STDOUT_FILENO, &outcome.standard_output},
      {STDERR_FILENO, &outcome.standard_error},
      {kChildResultFd, &outcome.result}};
  std::vector<Stream> streams(std::size(targets));
  for (size_t i = 0; i < streams.size(); ++i) {
    streams[i].child_fd = targets[i].first;
    streams[i].text = targets[i].second;
    streams[i].max_bytes = request.max_bytes;
    PAVO_RETURN_IF_ERROR(streams[i].open());
  }
  const Clock::time_point deadline = Clock::now() + request.timeout;
  Child child;
  PAVO_RETURN_IF_ERROR(child.start(request, &streams));
  child.follow(deadline, &streams, &outcome);
  return outcome;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name == nullptr ? "signal " + std::to_string(signal) : std::string("SIG") + name;
}

}  // namespace pavo
