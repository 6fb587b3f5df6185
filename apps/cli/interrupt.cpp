#include "apps/cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace pavo::cli {

namespace {

// Lock-free, so a handler may write it.
std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void on_interrupt(int /*signal*/) {
  interrupted.store(true);
}

}  // namespace

InterruptScope::InterruptScope() {
  interrupted.store(false);
  struct sigaction action = {};
  action.sa_handler = on_interrupt;
  // The handler is gone after the first signal; calls that were waiting go on.
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

InterruptScope::~InterruptScope() {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(SIGINT, &action, nullptr);
}

bool InterruptScope::requested() {
  return interrupted.load();
}

}  // namespace pavo::cli
