#include "core/trace.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <utility>

#include <nlohmann/json.hpp>

namespace pavo {
namespace {

using nlohmann::ordered_json;

constexpr int kProcess = 1;  // the format wants one

double microseconds(int64_t ns) {
  return static_cast<double>(ns) / 1e3;
}

// Names come from model files, which may hold anything.
std::string dump(const ordered_json& json) {
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
}

}  // namespace

void TraceEvent::arg(const char* key, int64_t value) {
  args.emplace_back(key, std::to_string(value));
}

void TraceEvent::arg(const char* key, double value) {
  args.emplace_back(key, dump(value));
}

void TraceEvent::arg(const char* key, const std::string& value) {
  args.emplace_back(key, dump(value));
}

Result<std::unique_ptr<Trace>> Trace::create(const std::string& path) {
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (!file) {
    return Status(Code::kIo, path + ": expected to write a trace there: " + std::strerror(errno));
  }
  return std::unique_ptr<Trace>(new Trace(path, std::move(file)));
}

Trace::Trace(std::string path, std::ofstream file)
    : path_(std::move(path)), file_(std::move(file)) {
  file_ << "[\n";
  name_track(kHostTrack, "host");
}

Trace::~Trace() {
  (void)finish();  // whoever wants to know has called it
}

int64_t Trace::now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void Trace::name_track(uint32_t track, const std::string& name) {
  write(dump(
      {{"ph", "M"},
       {"name", "thread_name"},
       {"pid", kProcess},
       {"tid", track},
       {"args", {{"name", name}}}}));
}

void Trace::add(const TraceEvent& event) {
  std::string line = dump(
      {{"ph", "X"},
       {"cat", event.category},
       {"name", event.name},
       {"pid", kProcess},
       {"tid", event.track},
       {"ts", microseconds(event.start_ns)},
       {"dur", microseconds(event.duration_ns)}});
  line.back() = ',';  // the object goes on
  line += "\"args\":{";
  for (const auto& [key, value] : event.args) {
    line += (line.back() == '{' ? "" : ",") + dump(key) + ":" + value;
  }
  write(line + "}}");
}

void Trace::write(const std::string& line) {
  file_ << (first_ ? "" : ",\n") << line;
  first_ = false;
}

Status Trace::finish() {
  if (!file_.is_open()) {
    return Status();
  }
  file_ << "\n]\n";
  file_.close();
  return file_.fail() ? Status(Code::kIo, path_ + ": the trace could not be written to its end")
                      : Status();
}

TraceSpan::TraceSpan(Trace* trace, const char* category, const char* name) : trace_(trace) {
  if (trace_ != nullptr) {
    event_.category = category;
    event_.name = name;
    event_.start_ns = Trace::now_ns();
  }
}

TraceSpan::~TraceSpan() {
  if (trace_ == nullptr) {
    return;
  }
  event_.duration_ns = Trace::now_ns() - event_.start_ns;
  try {
    trace_->add(event_);
  } catch (const std::exception&) {
    trace_->fail();  // out of memory: the run goes on, finish() tells
  }
}

}  // namespace pavo
