#include "core/plugin_probe.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>
#include <unistd.h>

#include "core/child_process.h"
#include "core/host_api.h"
#include "core/probe_protocol.h"
#include "core/system.h"

namespace pavo {
namespace {

using nlohmann::json;

constexpr size_t kMaxText = 600;
constexpr size_t kMaxWarnings = 16;

struct Answer {
  std::string stage = "before loading";
  std::string device;
  std::optional<json> result;
  bool garbled = false;
};

// Wrong types and missing keys give the default: the text comes from a process that ran foreign
// code.
std::string text_at(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? printable(it->get<std::string>(), kMaxText)
                                               : std::string();
}

bool bool_at(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_boolean() && it->get<bool>();
}

const json& list_at(const json& object, const char* key) {
  static const json empty = json::array();
  const auto it = object.find(key);
  return it != object.end() && it->is_array() ? *it : empty;
}

Answer parse_answer(std::string_view text) {
  Answer answer;
  while (!text.empty()) {
    const size_t end = text.find('\n');
    const json line = json::parse(text.substr(0, end), nullptr, false);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (end == std::string_view::npos || !line.is_object() || answer.result) {
      answer.garbled = true;
    } else if (line.contains(probe::kStage)) {
      answer.stage = text_at(line, probe::kStage);
      answer.device = text_at(line, probe::kStageDevice);
    } else if (line.contains(probe::kResult) && line[probe::kResult].is_object()) {
      answer.result = line[probe::kResult];
    } else {
      answer.garbled = true;
    }
  }
  return answer;
}

std::string place_of(const Answer& answer) {
  return answer.stage + (answer.device.empty() ? "" : " of " + answer.device);
}

// What the child last wrote to standard error, as a remark.
std::string last_words(const std::string& text) {
  const size_t end = text.find_last_not_of(" \n\t");
  if (end == std::string::npos) {
    return {};
  }
  const size_t newline = text.find_last_of('\n', end);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  return "; it said: " + printable(std::string_view(text).substr(begin, end + 1 - begin), 200);
}

std::string seconds_text(std::chrono::milliseconds time) {
  const auto ms = time.count();
  return ms % 1000 == 0 ? std::to_string(ms / 1000) + " s" : std::to_string(ms) + " ms";
}

void take_result(const json& result, ProbeResult* out) {
  out->outcome = bool_at(result, probe::kOk) ? ProbeOutcome::kOk : ProbeOutcome::kFailed;
  out->text = text_at(result, probe::kMessage);
  if (out->outcome == ProbeOutcome::kFailed && out->text.empty()) {
    out->text = "failed without a message";
  }
  for (const json& warning : list_at(result, probe::kWarnings)) {
    if (warning.is_string() && out->warnings.size() < kMaxWarnings) {
      out->warnings.push_back(printable(warning.get<std::string>(), kMaxText));
    }
  }
  for (const json& device : list_at(result, probe::kDevices)) {
    if (device.is_object() && out->devices.size() < probe::kMaxDevices) {
      out->devices.push_back(
          {text_at(device, probe::kId),
           text_at(device, probe::kName),
           text_at(device, probe::kArchitecture),
           bool_at(device, probe::kTested),
           text_at(device, probe::kMessage)});
    }
  }
}

ProbeResult fault(ProbeOutcome outcome, std::string text, const Answer& answer) {
  ProbeResult result;
  result.outcome = outcome;
  result.text = std::move(text);
  result.device_at_fault = answer.device;
  return result;
}

ProbeResult judge(const ChildOutcome& child, const ProbeRequest& request) {
  const Answer answer = parse_answer(child.result);
  const std::string words = last_words(child.standard_error);
  const bool answered = answer.result.has_value() && !answer.garbled;
  if (!answered && child.timed_out) {
    return fault(
        ProbeOutcome::kTimedOut,
        "did not answer within " + seconds_text(request.timeout) + " (" + place_of(answer) + ")" +
            words,
        answer);
  }
  if (!answered && child.signal != 0) {
    return fault(
        ProbeOutcome::kCrashed,
        "crashed with " + signal_name(child.signal) + " " + place_of(answer) + words,
        answer);
  }
  if (answer.garbled) {
    return fault(
        ProbeOutcome::kFailed,
        "wrote into the pipe of pavo-probe " + place_of(answer) + ", so its answer is lost" + words,
        answer);
  }
  if (!answered) {
    return fault(
        ProbeOutcome::kCrashed,
        "ended the process with exit code " + std::to_string(child.exit_code) + " " +
            place_of(answer) + words,
        answer);
  }
  ProbeResult result;
  take_result(*answer.result, &result);
  if (!child.standard_output.empty()) {
    result.warnings.push_back("prints to standard output: " + printable(child.standard_output, 80));
  }
  if (child.timed_out) {
    result.warnings.emplace_back("keeps the process from ending");
  } else if (child.signal != 0 || child.exit_code != 0) {
    result.warnings.push_back(
        "breaks the end of the process: " +
        (child.signal != 0 ? signal_name(child.signal)
                           : "exit code " + std::to_string(child.exit_code)) +
        words);
  }
  return result;
}

ProbeResult not_run(std::string text) {
  return fault(ProbeOutcome::kNotRun, std::move(text), {});
}

}  // namespace

const char* probe_outcome_name(ProbeOutcome outcome) {
  switch (outcome) {
    case ProbeOutcome::kOk:
      return "ok";
    case ProbeOutcome::kFailed:
      return "failed";
    case ProbeOutcome::kCrashed:
      return "crashed";
    case ProbeOutcome::kTimedOut:
      return "timed out";
    case ProbeOutcome::kNotRun:
      return "not run";
  }
  return "not run";
}

ProbeResult probe_plugin(const ProbeRequest& request) {
  ChildRequest child;
  child.program = request.program;
  if (child.program.empty()) {
    child.program = executable_path().parent_path() / "pavo-probe";
  }
  if (::access(child.program.c_str(), X_OK) != 0) {
    return not_run(
        child.program.string() +
        " is not there, so the plugin was not tried; reinstall, or turn "
        "probing off");
  }
  child.timeout = request.timeout;
  child.arguments = {probe::kOptionResultFd, std::to_string(kChildResultFd)};
  if (request.no_devices) {
    child.arguments.emplace_back(probe::kOptionNoDevices);
  }
  for (const std::string& id : request.devices) {
    child.arguments.emplace_back(probe::kOptionDevice);
    child.arguments.push_back(id);
  }
  child.arguments.push_back(request.plugin.string());
  const Result<ChildOutcome> outcome = run_child(child);
  return outcome.ok() ? judge(*outcome, request) : not_run(outcome.status().message());
}

}  // namespace pavo
