// Plugins that break one rule each are caught by the check of that rule, by name; plugins that keep
// all rules pass. The kit runs as its users run it, in processes of its own.
#include <cstdlib>
#include <ostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/conformance/runner.h"

namespace pavo::conformance {
namespace {

using testing::HasSubstr;

std::string fake(const std::string& name) {
  return std::string(PAVO_FAKES_DIR) + "/" + name + "/" + name + ".so";
}

Report run_kit(
    const std::string& plugin,
    const std::string& filter,
    std::map<std::string, std::string> given = {}) {
  RunnerOptions options;
  options.program = PAVO_CONFORMANCE;
  options.kit.plugin = plugin;
  options.kit.options = std::move(given);
  options.filter = filter;
  options.timeout = std::chrono::seconds(60);
  Result<Report> report = run_all(options);
  EXPECT_TRUE(report.ok()) << report.status().message();
  return report.ok() ? std::move(report).value() : Report();
}

struct Row {
  const char* plugin;        // a fake; "mock" breaks `rule`
  const char* rule;          // for the name of the test
  const char* check;         // that must fail
  const char* fault;         // in what it says
  const char* options = "";  // of the plugin: "key=value"
};

void PrintTo(const Row& row, std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << row.plugin << " " << row.rule;
}

// AddressSanitizer makes an exit of a crash.
std::string expected_text(const std::string& text) {
#if defined(__SANITIZE_ADDRESS__)
  return text.substr(0, text.find("crashed with SIG"));
#else
  return text;
#endif
}

class BrokenRule : public testing::TestWithParam<Row> {};

TEST_P(BrokenRule, IsCaughtByName) {
  const Row& row = GetParam();
  if (std::string(row.plugin) == "mock") {
    ::setenv("PAVO_MOCK_BREAK", row.rule, 1);
  }
  std::map<std::string, std::string> options;
  const std::string option = row.options;
  if (!option.empty()) {
    const size_t equals = option.find('=');
    options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  const Report report = run_kit(fake(row.plugin), row.check, options);
  ::unsetenv("PAVO_MOCK_BREAK");
  ASSERT_EQ(report.results.size(), 1u);
  const CheckResult& result = report.results[0];
  EXPECT_EQ(result.id, row.check);
  EXPECT_STREQ(outcome_name(result.outcome), "failed") << result.note;
  EXPECT_THAT(result.faults, testing::Contains(HasSubstr(expected_text(row.fault))));
}

constexpr Row kRows[] = {
    // The file and its loading.
    {"good", "NoLicense", "L0.note", "expected a license"},
    {"old_major", "OldMajor", "L0.note", "expected an ABI range"},
    {"extra_symbol", "ExtraSymbol", "L0.exports", "found pavo_fake_extra_symbol"},
    {"executable_stack", "ExecutableStack", "L0.stack", "-z,noexecstack"},
    {"HandlerInConstructor", "Handler", "L0.quiet", "found one for signal 2"},
    {"ThreadInConstructor", "Thread", "L0.quiet", "expected 1 threads, found 2"},
    {"PrintInConstructor", "Print", "L0.quiet", "found: a plugin was here"},
    {"FlushInConstructor", "Flush", "L0.quiet", "floating-point mode"},
    {"TrapInConstructor", "Trap", "L0.quiet", "it crashed with SIGILL"},
    {"ExitInConstructor", "Exit", "L0.quiet", "it ended the process with exit code 0"},
    {"CrashAtExit", "CrashAtExit", "L0.quiet", "expected the process to end well"},
    {"IgnoreVersions", "IgnoreVersions", "L0.versions", "expected PAVO_ERROR_VERSION"},
    {"ThrowInQuery", "ThrowInQuery", "L0.versions", "thrown across the ABI"},
    {"NullFunction", "NullFunction", "L0.table", "the function submit is NULL"},
    {"OtherId", "OtherId", "L0.table", "the table's id is"},
    // Options, instances, devices.
    {"mock", "take_any_option", "L1.bad_options", "found code 0"},
    {"mock", "leak_host_memory", "L1.cycles", "expected all host memory to be given back"},
    {"mock", "early_thread", "L1.devices", "expected no thread before device_open"},
    {"mock", "change_device_list", "L1.devices", "expected the same list every time"},
    {"TwiceSameDevice", "TwiceSameDevice", "L1.devices", "expected an id of its own"},
    {"EmptyDeviceId", "EmptyDeviceId", "L1.devices", "expected a printable id"},
    {"mock", "wrong_code", "L1.no_device", "expected PAVO_ERROR_NO_DEVICE"},
    {"mock", "no_message", "L1.no_device", "expected a message with every error"},
    {"mock", "output_on_error", "L1.no_device", "expected the output to be untouched"},
    {"mock", "ignore_tail", "L1.structs", "a byte set: expected code 3, found 0"},
    {"mock", "overrun_error", "L1.structs", "short pavo_error: it crashed with SIGSEGV"},
    {"FailSelfTest", "FailSelfTest", "L1.self_test", "expected the sum 3, got 4"},
    {"mock", "exit_in_self_test", "L1.self_test", "it ended the process with exit code 0"},
    {"mock", "print", "L1.memory", "expected no output, found: the mock was here"},
    // Memory, copies, timelines.
    {"mock", "leak_thread", "L1.open_close", "expected device_close to end threads, 10"},
    {"mock", "count_no_memory", "L1.memory", "expected used_bytes to count two buffers"},
    {"mock", "take_any_size", "L1.bad_buffers", "a negative size: expected code 1, found 0"},
    {"mock", "abort_on_size", "L1.bad_buffers", "it crashed with SIGABRT"},
    {"mock", "ignore_pitch", "L1.copies", "and nothing else, to be written"},
    {"mock", "take_any_copy", "L1.bad_copies", "expected PAVO_ERROR_INVALID_ARGUMENT"},
    {"mock", "copy_before_check", "L1.bad_copies", "expected nothing to be written"},
    {"mock", "take_any_rows", "L1.bad_packs", "rows 5 from 0 of 4: expected"},
    {"mock", "never_time_out", "L1.timeline", "expected PAVO_ERROR_TIMEOUT"},
    {"mock", "ignore_no_memory", "L1.host_memory", "allocation 1: it crashed with SIGSEGV"},
    {"mock", "ignore_no_memory_in_plan", "L1.host_memory", "it crashed with SIGSEGV"},
    // Verdicts.
    {"mock", "impure", "L2.pure.binary", "expected the same answer from"},
    {"mock", "share_verdict", "L2.pure.binary", "expected the same answers as in one thread"},
    {"mock", "no_reason", "L2.pure.binary", "expected a reason with a refusal", "refuse=binary"},
    {"mock", "no_text", "L2.pure.binary", "expected a text with a refusal", "refuse=binary"},
    {"mock", "answer_first_only", "L2.graph.binary", "expected a decision of 0..2"},
    {"mock", "accept_nonsense", "L2.nonsense.binary", "expected a refusal of a missing input"},
    {"mock", "overrun_verdict", "L2.structs.binary", "nothing behind the verdict to be written"},
    {"mock", "ignore_tensor_tail", "L2.structs.binary", "a tensor with unknown bytes"},
    // Runs.
    {"mock", "ignore_force", "L2.truth.binary", "expected the forced kernel"},
    {"mock",
     "lie_about_op",
     "L2.truth.binary",
     "expected another reason",
     "refuse=binary:dim0.1>70"},
    {"mock", "refuse_after_accept", "L2.truth.binary", "accepted, and then unsupported"},
    {"mock",
     "plan_refused_node",
     "L2.truth.binary",
     "expected plan_create to refuse",
     "refuse=binary:dim0.1>70"},
    {"mock", "wrong_value", "L2.truth.binary", "output 0, element 0: expected"},
    {"mock", "wrong_at_odd_offset", "L2.truth.binary", "odd offsets: output 0, element 0"},
    {"mock", "ignore_order", "L2.truth.rope", "inputs in another order: output 0, element 0"},
    {"mock", "write_nothing", "L2.truth.binary", "got nan"},
    {"mock", "write_behind_output", "L2.truth.binary", "found changed bytes after tensor 2"},
    {"mock", "write_gap", "L2.truth.binary", "bytes between the rows of an output"},
    {"mock", "write_input", "L2.truth.binary", "found changed input tensor 0"},
    {"mock", "write_behind_workspace", "L2.truth.matmul", "found changed bytes after workspace"},
    {"mock", "lie_about_rows", "L2.truth.attention", "K/V rows to hold for them"},
    {"mock", "follow_index", "L2.harm.embed", "it crashed with SIGSEGV"},
};

INSTANTIATE_TEST_SUITE_P(, BrokenRule, testing::ValuesIn(kRows), [](const auto& row_info) {
  return std::string(row_info.param.rule) + "_" + std::to_string(row_info.index);
});

// A wrong value at one multiple only: what sizes around bounds are for.
TEST(Kit, FindsWhatIsWrongForOddSizesOnly) {
  ::setenv("PAVO_MOCK_BREAK", "wrong_odd_value", 1);
  const Report report = run_kit(fake("mock"), "L2.truth.binary");
  ::unsetenv("PAVO_MOCK_BREAK");
  ASSERT_EQ(report.results.size(), 1u);
  EXPECT_STREQ(outcome_name(report.results[0].outcome), "failed");
}

// Wrong at one size that no list of common sizes holds, but that is the bound of the refusals.
TEST(Kit, GoesAroundTheBoundsOfVerdicts) {
  ::setenv("PAVO_MOCK_BREAK", "wrong_at_811", 1);
  const Report unseen = run_kit(fake("mock"), "L2.truth.binary");
  const Report seen = run_kit(fake("mock"), "L2.truth.binary", {{"refuse", "binary:dim0.1>811"}});
  ::unsetenv("PAVO_MOCK_BREAK");
  ASSERT_EQ(unseen.results.size(), 1u);
  EXPECT_STREQ(outcome_name(unseen.results[0].outcome), "passed");
  ASSERT_EQ(seen.results.size(), 1u);
  EXPECT_STREQ(outcome_name(seen.results[0].outcome), "failed");
  EXPECT_THAT(seen.results[0].faults, testing::Contains(HasSubstr(" N=811")));
}

TEST(Kit, SkipsWhatNeedsADeviceWithoutOne) {
  const Report report = run_kit(fake("mock"), "L1.", {{"devices", "0"}});
  EXPECT_EQ(report.count(Outcome::kFailed), 0u) << to_text(report, false);
  EXPECT_EQ(report.count(Outcome::kSkipped), 10u);
  for (const CheckResult& result : report.results) {
    EXPECT_EQ(result.outcome == Outcome::kSkipped, result.note == "it finds no device here");
  }
}

TEST(Kit, EndsAHang) {
  RunnerOptions options;
  options.program = PAVO_CONFORMANCE;
  options.kit.plugin = fake("HangInSelfTest");
  options.filter = "L1.self_test";
  options.timeout = std::chrono::seconds(2);
  const Result<Report> report = run_all(options);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(
      report->results.at(0).faults, testing::ElementsAre(HasSubstr("did not end within 2 s")));
}

TEST(Kit, TellsItsResultsInThreeForms) {
  const Report report = run_kit(fake("PrintInConstructor"), "L0.");
  EXPECT_EQ(report.count(Outcome::kFailed), 4u);  // no license, and output whenever it is loaded
  const std::string text = to_text(report, false);
  EXPECT_THAT(text, HasSubstr("failed  L0.quiet: loading and the query change nothing"));
  EXPECT_THAT(text, testing::Not(HasSubstr("L0.exports")));
  EXPECT_THAT(to_text(report, true), HasSubstr("passed  L0.exports"));
  const auto json = nlohmann::json::parse(to_json(report));
  EXPECT_EQ(json.at("failed"), 4);
  EXPECT_EQ(json.at("checks").size(), report.results.size());
  const std::string xml = to_junit(report);
  EXPECT_THAT(xml, HasSubstr("<testcase classname=\"L0\" name=\"L0.exports\""));
  EXPECT_THAT(xml, HasSubstr("failures=\"4\""));
  EXPECT_THAT(xml, HasSubstr("<failure message="));
}

TEST(Kit, SaysThatAFileIsNotThere) {
  RunnerOptions options;
  options.kit.plugin = "/nowhere/plugin.so";
  const auto report = run_all(options);
  ASSERT_FALSE(report.ok());
  EXPECT_EQ(report.status().code(), Code::kInvalidFile);
}

}  // namespace
}  // namespace pavo::conformance
