// The part of the fault matrix that a probe must find: each row is a plugin that breaks one rule
// and the line that the user reads.
#include "core/plugin_probe.h"

#include <chrono>
#include <ostream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

using testing::HasSubstr;

ProbeResult probe(const std::string& name, int timeout_ms = 10000) {
  ProbeRequest request;
  request.plugin = test::fake(name);
  request.timeout = std::chrono::milliseconds(timeout_ms);
  return probe_plugin(request);
}

struct Row {
  const char* plugin;
  ProbeOutcome outcome;
  const char* text;
  const char* warning = nullptr;
};

void PrintTo(const Row& row, std::ostream* out) {  // NOLINT: GoogleTest's name
  *out << row.plugin;
}

class ProbeMatrix : public testing::TestWithParam<Row> {};

TEST_P(ProbeMatrix, GivesTheVerdict) {
  const Row& row = GetParam();
  const bool hangs = row.outcome == ProbeOutcome::kTimedOut;
  const ProbeResult result = probe(row.plugin, hangs ? 1500 : 10000);
  EXPECT_STREQ(probe_outcome_name(result.outcome), probe_outcome_name(row.outcome)) << result.text;
  EXPECT_THAT(result.text, HasSubstr(row.text));
  EXPECT_EQ(result.text.find('\n'), std::string::npos);
  if (row.warning == nullptr) {
    EXPECT_THAT(result.warnings, testing::IsEmpty());
  } else {
    EXPECT_THAT(result.warnings, testing::ElementsAre(HasSubstr(row.warning)));
  }
}

constexpr ProbeOutcome kOk = ProbeOutcome::kOk;
constexpr ProbeOutcome kFailed = ProbeOutcome::kFailed;
constexpr ProbeOutcome kCrashed = ProbeOutcome::kCrashed;
constexpr ProbeOutcome kTimedOut = ProbeOutcome::kTimedOut;

constexpr Row kRows[] = {
    {"good", kOk, ""},
    {"note_only", kFailed, "does not export pavo_plugin_query"},
    {"undefined_symbol", kFailed, "undefined symbol: pavo_fake_not_there"},
    {"missing_library_user", kFailed, "libpavo_fake_missing_library.so: cannot open"},
    {"RefuseVersion", kFailed, "the host talks ABI"},
    {"ShortTable", kFailed, "the table has 64 bytes"},
    {"LongTable", kFailed, "of the table is set"},
    {"NullFunction", kFailed, "the function submit is NULL"},
    {"OtherId", kFailed, "the table's id is \"somebody-else\""},
    {"TrapInConstructor", kCrashed, "crashed with SIGILL while loading"},
    {"HangInConstructor", kTimedOut, "did not answer within 1500 ms (while loading)"},
    {"ExitInConstructor", kCrashed, "ended the process with exit code 0 while loading"},
    {"ThrowInConstructor", kFailed, "cannot be loaded: thrown while loading"},
    {"LieMajor", kFailed, "the table says ABI 1.1, this program talks 0.1"},
    {"NullTable", kFailed, "the table is NULL"},
    {"TrapInQuery", kCrashed, "crashed with SIGILL in pavo_plugin_query"},
    {"ThrowInQuery", kFailed, "pavo_plugin_query threw an exception"},
    {"ThrowInCreate", kFailed, "plugin_create threw an exception (thrown across the ABI)"},
    {"FailCreate", kFailed, "plugin_create: expected a good day, got a bad one"},
    {"EndlessDeviceList", kFailed, "lists 4000000000 devices, expected at most 256"},
    {"EmptyDeviceId", kFailed, "device 0 has the id \"\", expected a printable text"},
    {"TwiceSameDevice", kFailed, "lists device fake-twicesamedevice-0 twice"},
    {"HangInSelfTest", kTimedOut, "(in device_self_test of fake-hanginselftest-0)"},
    {"AbortInSelfTest",
     kCrashed,
     "crashed with SIGABRT in device_self_test of fake-abortinselftest-0"},
    {"GarbleInConstructor", kFailed, "wrote into the pipe of pavo-probe"},
    {"PrintInConstructor", kOk, "", "prints to standard output: a plugin was here"},
    {"HandlerInConstructor", kFailed, "installs a handler for signal 2 while it is loaded"},
    {"ThreadInConstructor", kOk, "", "starts a thread while it is loaded"},
    {"CrashAtExit", kOk, "", "breaks the end of the process: SIGABRT"},
};

INSTANTIATE_TEST_SUITE_P(Faults, ProbeMatrix, testing::ValuesIn(kRows), [](const auto& row_info) {
  return std::string(row_info.param.plugin);
});

TEST(PluginProbe, ListsAndTestsDevices) {
  const ProbeResult result = probe("good");
  ASSERT_EQ(result.devices.size(), 1u);
  EXPECT_EQ(result.devices[0].id, "fake-good-0");
  EXPECT_EQ(result.devices[0].name, "a fake device");
  EXPECT_TRUE(result.devices[0].tested);
  EXPECT_EQ(result.devices[0].fault, "");
}

TEST(PluginProbe, KeepsToTheDevicesThatWereAskedFor) {
  ProbeRequest request;
  request.plugin = test::fake("AbortInSelfTest");
  request.devices = {"another"};
  EXPECT_EQ(probe_plugin(request).outcome, kOk);
  request.devices = {};
  request.no_devices = true;
  const ProbeResult result = probe_plugin(request);
  EXPECT_EQ(result.outcome, kOk);
  ASSERT_EQ(result.devices.size(), 1u);
  EXPECT_FALSE(result.devices[0].tested);
}

TEST(PluginProbe, PutsAFailedDeviceDownToTheDevice) {
  for (const auto& [name, text] :
       {std::pair("FailSelfTest", "device_self_test: expected the sum 3, got 4"),
        std::pair("ThrowInSelfTest", "device_self_test threw an exception"),
        std::pair("FailOpen", "device_open: no device fake-failopen-0")}) {
    const ProbeResult result = probe(name);
    EXPECT_EQ(result.outcome, kOk) << result.text;
    ASSERT_EQ(result.devices.size(), 1u);
    EXPECT_THAT(result.devices[0].fault, HasSubstr(text));
  }
}

TEST(PluginProbe, NamesTheDeviceThatCrashedOrHung) {
  EXPECT_EQ(probe("AbortInSelfTest").device_at_fault, "fake-abortinselftest-0");
  EXPECT_EQ(probe("TrapInConstructor").device_at_fault, "");
}

TEST(PluginProbe, KnowsNothingWithoutTheHelper) {
  ProbeRequest request;
  request.plugin = test::fake("good");
  request.program = "/nowhere/pavo-probe";
  const ProbeResult result = probe_plugin(request);
  EXPECT_EQ(result.outcome, ProbeOutcome::kNotRun);
  EXPECT_THAT(result.text, HasSubstr("/nowhere/pavo-probe is not there"));
}

// A helper that answers nonsense, as one that a plugin took over would.
TEST(PluginProbe, DistrustsAnswers) {
  const test::TempDir dir;
  const auto judge = [&](const std::string& script) {
    ProbeRequest request;
    request.plugin = test::fake("good");
    request.program = dir.write("helper", "#!/bin/sh\n" + script + "\n");
    std::filesystem::permissions(request.program, std::filesystem::perms::owner_all);
    return probe_plugin(request);
  };
  EXPECT_THAT(judge("echo '{\"result\": 5' >&3").text, HasSubstr("wrote into the pipe"));
  EXPECT_THAT(judge("printf '{\"result\": {\"ok\": true}}' >&3").text, HasSubstr("wrote into"));
  EXPECT_THAT(judge("exit 0").text, HasSubstr("exit code 0 before loading"));
  EXPECT_THAT(judge("echo hello >&2; exit 3").text, HasSubstr("; it said: hello"));
  const ProbeResult odd = judge(
      "echo '{\"result\": {\"ok\": \"yes\", \"warnings\": 3, \"devices\": [1, {\"id\": 2}]}}' >&3");
  EXPECT_EQ(odd.outcome, kFailed);
  EXPECT_EQ(odd.text, "failed without a message");
  EXPECT_EQ(odd.devices.size(), 1u);
}

}  // namespace
}  // namespace pavo
