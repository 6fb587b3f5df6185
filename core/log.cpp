// spdlog, behind one sink. Header-only, so that a release needs nothing but glibc at run time.
#include "core/log.h"

#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include "core/host_api.h"

namespace pavo {
namespace {

spdlog::level::level_enum to_spdlog(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarn:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
    case LogLevel::kOff:
      return spdlog::level::off;
  }
  return spdlog::level::err;
}

LogLevel from_spdlog(spdlog::level::level_enum level) {
  switch (level) {
    case spdlog::level::trace:
    case spdlog::level::debug:
      return LogLevel::kDebug;
    case spdlog::level::info:
      return LogLevel::kInfo;
    case spdlog::level::warn:
      return LogLevel::kWarn;
    case spdlog::level::off:
      return LogLevel::kOff;
    default:
      return LogLevel::kError;
  }
}

// Hands messages to the caller's function, or to standard error while there is none.
class SwitchSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  SwitchSink() { stderr_sink_.set_pattern("%^%l:%$ %v"); }

  void replace(LogSink target) {
    const std::lock_guard<std::mutex> lock(mutex_);
    sink_ = std::move(target);
  }

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    if (sink_) {
      sink_(
          from_spdlog(message.level),
          std::string_view(message.payload.data(), message.payload.size()));
    } else {
      stderr_sink_.log(message);
    }
  }
  void flush_() override { stderr_sink_.flush(); }

 private:
  LogSink sink_;
  spdlog::sinks::stderr_color_sink_mt stderr_sink_;
};

struct Log {
  std::shared_ptr<SwitchSink> sink = std::make_shared<SwitchSink>();
  spdlog::logger logger = spdlog::logger("pavo", sink);
  Log() {
    logger.set_level(spdlog::level::warn);
    logger.flush_on(spdlog::level::debug);
  }
};

// Never destroyed: plugins may log until the process is gone.
Log& log() {
  static Log* const instance = new Log();
  return *instance;
}

}  // namespace

const char* log_level_name(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarn:
      return "warning";
    case LogLevel::kError:
      return "error";
    case LogLevel::kOff:
      return "off";
  }
  return "error";
}

void set_log_level(LogLevel level) {
  log().logger.set_level(to_spdlog(level));
}

LogLevel log_level() {
  return from_spdlog(log().logger.level());
}

void set_log_sink(LogSink sink) {
  log().sink->replace(std::move(sink));
}

void log_message(LogLevel level, std::string_view message) noexcept {
  try {
    // Names of files and values of settings are in it, and it goes to a terminal.
    const std::string text = printable(message, message.size());
    log().logger.log(to_spdlog(level), spdlog::string_view_t(text.data(), text.size()));
  } catch (...) {
    return;  // no memory for the logger itself: nothing is left to report it with
  }
}

}  // namespace pavo
