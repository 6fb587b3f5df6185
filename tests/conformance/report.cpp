#include "tests/conformance/report.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include <nlohmann/json.hpp>

namespace pavo::conformance {
namespace {

using nlohmann::ordered_json;

std::string dump(const ordered_json& value, int indent) {
  return value.dump(indent, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json result_json(const CheckResult& result) {
  return {
      {"id", result.id},
      {"outcome", outcome_name(result.outcome)},
      {"faults", result.faults},
      {"note", result.note},
      {"ms", result.ms}};
}

std::string ms_text(double ms) {
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%.0f ms", ms);
  return text.data();
}

std::string xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
    }
  }
  return out;
}

std::string level_of(const CheckResult& result) {
  return result.id.substr(0, result.id.find('.'));
}

std::string seconds(double ms) {
  std::array<char, 32> text = {};
  std::snprintf(text.data(), text.size(), "%.3f", ms / 1000);
  return text.data();
}

}  // namespace

size_t Report::count(Outcome outcome) const {
  return static_cast<size_t>(
      std::count_if(results.begin(), results.end(), [&](const CheckResult& result) {
        return result.outcome == outcome;
      }));
}

std::string to_text(const Report& report, bool verbose) {
  std::string text;
  for (size_t i = 0; i < report.results.size(); ++i) {
    const CheckResult& result = report.results[i];
    if (result.outcome == Outcome::kPassed && !verbose) {
      continue;
    }
    text += std::string(outcome_name(result.outcome)) + "  " + result.id + ": " +
            report.checks[i].rule + " (" + ms_text(result.ms) + ")\n";
    for (const std::string& fault : result.faults) {
      text += "    " + fault + "\n";
    }
    if (!result.note.empty()) {
      text += "    " + result.note + "\n";
    }
  }
  const size_t failed = report.count(Outcome::kFailed);
  text += report.plugin + ": " + std::to_string(report.count(Outcome::kPassed)) + " passed, " +
          std::to_string(failed) + " failed, " + std::to_string(report.count(Outcome::kSkipped)) +
          " skipped (seed " + std::to_string(report.seed) + ")\n";
  return text;
}

std::string to_json(const Report& report) {
  ordered_json checks = ordered_json::array();
  for (size_t i = 0; i < report.results.size(); ++i) {
    ordered_json check = result_json(report.results[i]);
    check["rule"] = report.checks[i].rule;
    checks.push_back(std::move(check));
  }
  const ordered_json json = {
      {"plugin", report.plugin},
      {"seed", report.seed},
      {"passed", report.count(Outcome::kPassed)},
      {"failed", report.count(Outcome::kFailed)},
      {"skipped", report.count(Outcome::kSkipped)},
      {"checks", std::move(checks)}};
  return dump(json, 2) + "\n";
}

std::string to_junit(const Report& report) {
  std::string text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"conformance of " +
      xml(report.plugin) + "\" tests=\"" + std::to_string(report.results.size()) +
      "\" failures=\"" + std::to_string(report.count(Outcome::kFailed)) + "\" skipped=\"" +
      std::to_string(report.count(Outcome::kSkipped)) + "\">\n";
  for (size_t i = 0; i < report.results.size(); ++i) {
    const CheckResult& result = report.results[i];
    text += "  <testcase classname=\"" + level_of(result) + "\" name=\"" + xml(result.id) +
            "\" time=\"" + seconds(result.ms) + "\">\n";
    if (result.outcome == Outcome::kFailed) {
      std::string lines;
      for (const std::string& fault : result.faults) {
        lines += fault + "\n";
      }
      text += "    <failure message=\"" + xml(report.checks[i].rule) + "\">" + xml(lines) +
              "</failure>\n";
    } else if (result.outcome == Outcome::kSkipped) {
      text += "    <skipped message=\"" + xml(result.note) + "\"/>\n";
    }
    text += "  </testcase>\n";
  }
  return text + "</testsuite>\n";
}

std::string to_line(const CheckResult& result) {
  return dump(result_json(result), -1);
}

bool from_line(const std::string& line, CheckResult* result) {
  try {
    const ordered_json json = ordered_json::parse(line);
    result->id = json.at("id");
    result->faults = json.at("faults").get<std::vector<std::string>>();
    result->note = json.at("note");
    result->ms = json.at("ms");
    const std::string outcome = json.at("outcome");
    for (const Outcome known : {Outcome::kPassed, Outcome::kFailed, Outcome::kSkipped}) {
      if (outcome == outcome_name(known)) {
        result->outcome = known;
        return true;
      }
    }
  } catch (const ordered_json::exception&) {
    return false;
  }
  return false;
}

}  // namespace pavo::conformance
