#include "core/plugin_guard.h"

#include <algorithm>
#include <array>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include "core/log.h"
#include "core/mapped_files.h"

namespace pavo {
namespace {

// All that a signal handler may look at: plain memory that is never freed.
struct GuardedPlugin {
  std::atomic<const pavo_plugin_api*> api{nullptr};
  std::atomic<bool> used{false};
  uintptr_t begin = 0;  // where its code and data are mapped
  uintptr_t end = 0;
  std::array<char, 80> id = {};
  std::array<char, PATH_MAX> crash_file = {};
};

constexpr int64_t kSecond = 1000000000;
constexpr size_t kMaxPlugins = 32;
std::array<GuardedPlugin, kMaxPlugins> guarded_plugins;

// What one thread is doing. The innermost scope of each thread.
struct ActiveCall {
  std::atomic<const pavo_plugin_api*> api{nullptr};
  std::atomic<const char*> name{nullptr};
  std::atomic<int64_t> start_ns{0};
};

struct Threads {
  std::mutex mutex;
  std::vector<ActiveCall*> calls;
};

// Never destroyed: threads may end after it otherwise.
Threads& threads() {
  static auto* const instance = new Threads();
  return *instance;
}

// Puts a thread's ActiveCall on the watchdog's list for as long as the thread lives.
struct ThreadEntry {
  ThreadEntry() {
    const std::lock_guard<std::mutex> lock(threads().mutex);
    threads().calls.push_back(&call);
  }
  ThreadEntry(const ThreadEntry&) = delete;
  ThreadEntry& operator=(const ThreadEntry&) = delete;
  ~ThreadEntry() {
    const std::lock_guard<std::mutex> lock(threads().mutex);
    auto& calls = threads().calls;
    calls.erase(std::remove(calls.begin(), calls.end(), &call), calls.end());
  }
  ActiveCall call;
};

ActiveCall& own_call() {
  thread_local ThreadEntry entry;
  return entry.call;
}

// The same without making one, for the signal handler; NULL in a thread that never had a scope.
thread_local ActiveCall* own_call_if_any = nullptr;

int64_t now_ns() {
  timespec now = {};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * kSecond + now.tv_nsec;
}

GuardedPlugin* find_plugin(const pavo_plugin_api* api) {
  for (GuardedPlugin& plugin : guarded_plugins) {
    if (api != nullptr && plugin.api.load(std::memory_order_acquire) == api) {
      return &plugin;
    }
  }
  return nullptr;
}

GuardedPlugin* find_plugin_at(uintptr_t address) {
  for (GuardedPlugin& plugin : guarded_plugins) {
    if (plugin.api.load(std::memory_order_acquire) != nullptr && address >= plugin.begin &&
        address < plugin.end) {
      return &plugin;
    }
  }
  return nullptr;
}

// Text put together without memory from the heap; async-signal-safe.
class Line {
 public:
  Line& add(std::string_view text) {
    const size_t count = std::min(text.size(), text_.size() - size_);
    std::memcpy(text_.data() + size_, text.data(), count);
    size_ += count;
    return *this;
  }
  Line& add_number(int64_t number) {
    std::array<char, 20> digits = {};
    size_t at = digits.size();
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number > 0 && at > 0);
    return add(std::string_view(digits.data() + at, digits.size() - at));
  }
  void write_to(int fd) const {
    if (::write(fd, text_.data(), size_) < 0) {
      return;  // nothing is left to be done about it
    }
  }

 private:
  std::array<char, 400> text_ = {};
  size_t size_ = 0;
};

std::string_view signal_text(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "SIGSEGV";
    case SIGBUS:
      return "SIGBUS";
    case SIGILL:
      return "SIGILL";
    case SIGFPE:
      return "SIGFPE";
    case SIGTRAP:
      return "SIGTRAP";
    case SIGABRT:
      return "SIGABRT";
    default:
      return "a signal";
  }
}

// Async-signal-safe. `what`: "crashed with SIGSEGV in submit".
void write_down(const GuardedPlugin& plugin, const Line& what) {
  if (plugin.crash_file[0] != '\0') {
    const int fd = ::open(
        plugin.crash_file.data(),
        O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
        S_IRUSR | S_IWUSR);
    if (fd >= 0) {
      what.write_to(fd);
      ::close(fd);
    }
  }
  Line().add("error: plugin ").add(plugin.id.data()).add(" ").write_to(STDERR_FILENO);
  what.write_to(STDERR_FILENO);
  Line()
      .add("; the next start tries it in a child process, after a second time it is skipped\n")
      .write_to(STDERR_FILENO);
}

uintptr_t program_counter(const void* context) {
  const auto* machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(machine->gregs[REG_RIP]);
#else
  return static_cast<uintptr_t>(machine->pc);
#endif
}

// A fault of the file that is read, whoever reads it: no strike for a plugin.
void end_if_file_is_gone(const siginfo_t* info) {
  const char* path = mapped_file_at(reinterpret_cast<uintptr_t>(info->si_addr));
  if (path != nullptr) {
    Line()
        .add("error: '")
        .add(path)
        .add("' cannot be read any more: it was cut while it was in use, or its disk failed\n")
        .write_to(STDERR_FILENO);
    ::_exit(EXIT_FAILURE);
  }
}

void on_crash(int signal, siginfo_t* info, void* context) {
  if (signal == SIGBUS) {
    end_if_file_is_gone(info);
  }
  // By the code that crashed (a plugin's own thread), else by the call that this thread is in (it
  // died inside a library that the plugin called).
  const ActiveCall* call = own_call_if_any;
  const GuardedPlugin* plugin = find_plugin_at(program_counter(context));
  const char* name = nullptr;
  if (call != nullptr && call->api.load() != nullptr) {
    plugin = plugin == nullptr ? find_plugin(call->api.load()) : plugin;
    name =
        plugin != nullptr && plugin->api.load() == call->api.load() ? call->name.load() : nullptr;
  }
  if (plugin != nullptr) {
    Line what;
    what.add("crashed with ").add(signal_text(signal));
    what.add(name == nullptr ? " in a thread of its own" : " in ");
    write_down(*plugin, name == nullptr ? what : what.add(name));
  }
  // SA_RESETHAND: the signal now does what it does by default. A fault happens again by itself.
  ::raise(signal);
}

void check_for_hangs(int64_t limit_ns) {
  const std::lock_guard<std::mutex> lock(threads().mutex);
  const int64_t now = now_ns();
  for (const ActiveCall* call : threads().calls) {
    const pavo_plugin_api* api = call->api.load(std::memory_order_acquire);
    const int64_t start = call->start_ns.load(std::memory_order_acquire);
    const GuardedPlugin* plugin = find_plugin(api);
    if (plugin == nullptr || start == 0 || now - start < limit_ns) {
      continue;
    }
    Line what;
    const bool seconds = limit_ns >= kSecond;
    what.add("did not come back within ");
    what.add_number(limit_ns / (seconds ? kSecond : kSecond / 1000));
    what.add(seconds ? " s from " : " ms from ");
    const char* name = call->name.load();
    what.add(name == nullptr ? "a call" : name);
    write_down(*plugin, what.add(" (the limit is the setting hang_timeout_s)"));
    std::_Exit(EXIT_FAILURE);
  }
}

std::atomic<int64_t> hang_limit_ns{0};

struct Mapping {
  const void* code;
  uintptr_t begin;
  uintptr_t end;
};

// The mapped range of the object that holds a function.
Mapping find_mapping(const void* code) {
  Mapping mapping = {code, 0, 0};
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* out = static_cast<Mapping*>(data);
        uintptr_t begin = UINTPTR_MAX;
        uintptr_t end = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& segment = info->dlpi_phdr[i];
          if (segment.p_type == PT_LOAD) {
            begin = std::min<uintptr_t>(begin, info->dlpi_addr + segment.p_vaddr);
            end = std::max<uintptr_t>(end, info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
          }
        }
        const auto address = reinterpret_cast<uintptr_t>(out->code);
        if (address < begin || address >= end) {
          return 0;
        }
        out->begin = begin;
        out->end = end;
        return 1;
      },
      &mapping);
  return mapping;
}

}  // namespace

void guard_plugin(
    const pavo_plugin_api* api,
    const std::string& id,
    const void* code,
    const std::filesystem::path& crash_file) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  for (GuardedPlugin& plugin : guarded_plugins) {
    if (plugin.api.load() == api) {
      return;
    }
    if (plugin.api.load() == nullptr) {
      const Mapping mapping = find_mapping(code);
      plugin.begin = mapping.begin;
      plugin.end = mapping.end;
      id.copy(plugin.id.data(), plugin.id.size() - 1);
      const std::string& file = crash_file.native();
      if (file.size() < plugin.crash_file.size()) {
        file.copy(plugin.crash_file.data(), file.size());
      }
      plugin.api.store(api, std::memory_order_release);
      return;
    }
  }
}

bool plugin_was_used(const pavo_plugin_api* api) {
  const GuardedPlugin* plugin = find_plugin(api);
  return plugin != nullptr && plugin->used.load();
}

PluginScope::PluginScope(const pavo_plugin_api* api, const char* name) {
  ActiveCall& call = own_call();
  own_call_if_any = &call;
  outer_api_ = call.api.load(std::memory_order_relaxed);
  outer_name_ = call.name.load(std::memory_order_relaxed);
  outer_start_ns_ = call.start_ns.load(std::memory_order_relaxed);
  call.start_ns.store(now_ns(), std::memory_order_release);
  call.name.store(name, std::memory_order_release);
  call.api.store(api, std::memory_order_release);
  GuardedPlugin* plugin = find_plugin(api);
  if (plugin != nullptr && std::strcmp(name, "submit") == 0) {
    plugin->used.store(true, std::memory_order_relaxed);
  }
}

PluginScope::~PluginScope() {
  ActiveCall& call = own_call();
  call.api.store(outer_api_, std::memory_order_release);
  call.name.store(outer_name_, std::memory_order_release);
  call.start_ns.store(outer_start_ns_, std::memory_order_release);
}

void watch_crashes() {
  // A stack overflow leaves no room for the handler on the stack that overflowed.
  constexpr size_t kStackBytes = 64 << 10;
  alignas(16) static std::array<char, kStackBytes> stack;
  stack_t alternative = {};
  alternative.ss_sp = stack.data();
  alternative.ss_size = stack.size();
  ::sigaltstack(&alternative, nullptr);
  for (const int signal : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGABRT}) {
    struct sigaction before = {};
    if (::sigaction(signal, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) {
      continue;  // a debugger's or a sanitizer's
    }
    struct sigaction action = {};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    ::sigaction(signal, &action, nullptr);
  }
}

void watch_hangs(std::chrono::milliseconds limit) {
  using std::chrono::nanoseconds;
  const bool first = hang_limit_ns.exchange(nanoseconds(limit).count()) == 0;
  if (!first) {
    return;
  }
  try {
    std::thread([] {
      for (;;) {
        const int64_t limit_ns = hang_limit_ns.load();
        const auto pause = std::min<int64_t>(limit_ns / 4, kSecond);
        std::this_thread::sleep_for(nanoseconds(pause));
        check_for_hangs(limit_ns);
      }
    }).detach();
  } catch (const std::system_error& error) {
    log_warn(
        std::string("no thread for the watchdog (") + error.what() +
        "); a plugin that hangs will not be ended");
  }
}

}  // namespace pavo
