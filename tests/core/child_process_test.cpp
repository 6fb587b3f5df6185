#include "core/child_process.h"

#include <chrono>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace pavo {
namespace {

using std::chrono::milliseconds;

Result<ChildOutcome> shell(const std::string& script, milliseconds timeout = milliseconds(5000)) {
  ChildRequest request;
  request.program = "/bin/sh";
  request.arguments = {"-c", script};
  request.timeout = timeout;
  return run_child(request);
}

TEST(ChildProcess, KeepsTheThreeStreamsApart) {
  const auto child = shell("echo out; echo err >&2; echo res >&3; cat; exit 7");
  ASSERT_TRUE(child.ok()) << child.status().message();
  EXPECT_EQ(child->standard_output, "out\n");
  EXPECT_EQ(child->standard_error, "err\n");
  EXPECT_EQ(child->result, "res\n");
  EXPECT_EQ(child->exit_code, 7);
  EXPECT_EQ(child->signal, 0);
  EXPECT_FALSE(child->timed_out);
}

TEST(ChildProcess, ReportsTheSignal) {
  const auto child = shell("kill -SEGV $$");
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->signal, SIGSEGV);
  EXPECT_EQ(signal_name(child->signal), "SIGSEGV");
}

TEST(ChildProcess, KillsTheWholeGroupAtTheDeadline) {
  const auto start = std::chrono::steady_clock::now();
  const auto child = shell("echo begun >&3; sleep 100 & sleep 100", milliseconds(200));
  const auto took = std::chrono::steady_clock::now() - start;
  ASSERT_TRUE(child.ok());
  EXPECT_TRUE(child->timed_out);
  EXPECT_EQ(child->signal, SIGKILL);
  EXPECT_EQ(child->result, "begun\n");
  EXPECT_LT(took, milliseconds(2000));
}

TEST(ChildProcess, DoesNotWaitForGrandchildren) {
  const auto child = shell("sleep 3 & exit 0", milliseconds(2500));
  ASSERT_TRUE(child.ok());
  EXPECT_FALSE(child->timed_out);
}

TEST(ChildProcess, BoundsWhatItKeeps) {
  ChildRequest request;
  request.program = "/bin/sh";
  request.arguments = {"-c", "head -c 1000000 /dev/zero"};
  request.max_bytes = 1000;
  const auto child = run_child(request);
  ASSERT_TRUE(child.ok());
  EXPECT_EQ(child->standard_output.size(), 1000u);
  EXPECT_EQ(child->exit_code, 0);
}

TEST(ChildProcess, SaysWhyItCannotStart) {
  ChildRequest request;
  request.program = "/nowhere/helper";
  const auto child = run_child(request);
  ASSERT_FALSE(child.ok());
  EXPECT_EQ(child.status().message(), "cannot run /nowhere/helper: No such file or directory");
}

TEST(ChildProcess, LeavesNoDescriptorBehind) {
  const int before = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(before);
  ASSERT_TRUE(shell("true").ok());
  ASSERT_TRUE(shell("kill -9 $$").ok());
  const int after = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ::close(after);
  EXPECT_EQ(before, after);
}

}  // namespace
}  // namespace pavo
