// A record of what the executor did and when, for people: Trace Event JSON, which Perfetto and
// chrome://tracing open. Format: the "Trace Event Format" document of the Chromium project.
//
// Events go to the file as they come, so that a run which is stopped leaves a readable trace: the
// format allows the closing bracket to be missing. One thread at a time.
#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"

namespace pavo {

// Something that took time. Events of one track nest by their times.
struct TraceEvent {
  uint32_t track = 0;
  const char* category = "";
  std::string name;
  int64_t start_ns = 0;  // steady clock
  int64_t duration_ns = 0;
  std::vector<std::pair<const char*, std::string>> args;  // values as JSON

  void arg(const char* key, int64_t value);
  void arg(const char* key, double value);
  void arg(const char* key, const std::string& value);
};

class Trace {
 public:
  static constexpr uint32_t kHostTrack = 0;
  static constexpr uint32_t device_track(uint32_t device) { return device + 1; }

  // Makes or empties the file. kIo names it and the system's reason.
  static Result<std::unique_ptr<Trace>> create(const std::string& path);
  ~Trace();

  void name_track(uint32_t track, const std::string& name);
  void add(const TraceEvent& event);
  // Closes the file; kIo if any of it could not be written. Nothing may be added afterwards.
  Status finish();
  // Makes finish() fail: an event was lost.
  void fail() { file_.setstate(std::ios::failbit); }

  static int64_t now_ns();

 private:
  Trace(std::string path, std::ofstream file);
  void write(const std::string& line);

  std::string path_;
  std::ofstream file_;
  bool first_ = true;
};

// An event from here to the end of the scope; nothing if there is no trace.
class TraceSpan {
 public:
  TraceSpan(Trace* trace, const char* category, const char* name);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  TraceSpan(TraceSpan&&) = delete;
  TraceSpan& operator=(TraceSpan&&) = delete;

  template <typename Value>
  void arg(const char* key, const Value& value) {
    if (trace_ != nullptr) {
      event_.arg(key, value);
    }
  }

  // Leaves the event out, for work that turned out to be none.
  void drop() { trace_ = nullptr; }

 private:
  Trace* trace_;
  TraceEvent event_;
};

}  // namespace pavo
