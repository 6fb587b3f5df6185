// The program's log: every message of core, llm, apps and plugins passes through log_message.
// Text goes to standard error (standard output belongs to answers), unless a sink takes it.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace pavo {

// Values are those of PAVO_LOG_*.
enum class LogLevel : int32_t { kDebug = 0, kInfo, kWarn, kError, kOff };

const char* log_level_name(LogLevel level);

// Messages below the level are dropped; kWarn at start. Any thread.
void set_log_level(LogLevel level);
LogLevel log_level();

// Takes every message of at least the level instead of standard error; an empty function gives it
// back. Called from any thread, one at a time.
using LogSink = std::function<void(LogLevel level, std::string_view message)>;
void set_log_sink(LogSink sink);

// Any thread. Never throws; a message that cannot be written is lost.
void log_message(LogLevel level, std::string_view message) noexcept;

inline void log_debug(std::string_view message) {
  log_message(LogLevel::kDebug, message);
}
inline void log_info(std::string_view message) {
  log_message(LogLevel::kInfo, message);
}
inline void log_warn(std::string_view message) {
  log_message(LogLevel::kWarn, message);
}
inline void log_error(std::string_view message) {
  log_message(LogLevel::kError, message);
}

}  // namespace pavo
