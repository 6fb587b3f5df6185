// What a trace tells of a program that ran on two devices, read back as JSON.
#include "core/trace.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/core/program_fixture.h"
#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the fixture of this file
using nlohmann::json;

json read_json(const std::filesystem::path& path) {
  return json::parse(std::ifstream(path), nullptr, false);
}

json named(const json& events, const std::string& key, const std::string& value) {
  json found = json::array();
  for (const json& event : events) {
    if (event.value(key, "") == value) {
      found.push_back(event);
    }
  }
  return found;
}

// One run of the chain with glu refused by the first device: 3 segments, 3 copies.
json trace_of_refused_chain(const TempDir& folder, RunStats* stats) {
  const auto path = folder.path() / "trace.json";
  auto trace = Trace::create(path);
  EXPECT_TRUE(trace.ok()) << trace.status().to_string();
  World world("glu");
  world.context.trace = trace->get();
  Chain chain;
  auto program = Program::create(std::move(chain.graph), {chain.out}, {}, world.context);
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  EXPECT_TRUE((*program)->set_step(chain.ids, std::vector<int32_t>{1, 2, 3}).ok());
  const auto ran = (*program)->run();
  EXPECT_TRUE(ran.ok()) << ran.status().to_string();
  *stats = *ran;
  EXPECT_TRUE((*trace)->finish().ok());
  return read_json(path);
}

TEST(Trace, TellsCopiesAndNodesOfAFallback) {
  const TempDir folder;
  RunStats stats;
  const json events = trace_of_refused_chain(folder, &stats);
  ASSERT_TRUE(events.is_array());
  int64_t bytes = 0;
  for (const json& copy : named(events, "name", "copy activation")) {
    EXPECT_NE(copy["args"]["from"], copy["args"]["to"]);
    bytes += copy["args"]["bytes"].get<int64_t>();
  }
  EXPECT_EQ(bytes, stats.activation_bytes_moved);
  EXPECT_GT(bytes, 0);
  EXPECT_EQ(named(events, "name", "submit").size(), 3u);
  EXPECT_EQ(named(events, "name", "prepare program").size(), 1u);

  const json glu = named(events, "name", "gated");
  ASSERT_EQ(glu.size(), 1u);
  EXPECT_EQ(glu[0]["tid"], Trace::device_track(1));
  EXPECT_EQ(glu[0]["args"]["op"], "glu");
  EXPECT_EQ(glu[0]["args"]["ideal_bytes"], 3 * 3 * kWidth * 4);
  ASSERT_EQ(named(events, "name", "sum").size(), 1u);
  EXPECT_EQ(named(events, "name", "sum")[0]["tid"], Trace::device_track(0));
}

TEST(Trace, EventsLieInTheirStep) {
  const TempDir folder;
  RunStats stats;
  const json events = trace_of_refused_chain(folder, &stats);
  const json step = named(events, "name", "step");
  ASSERT_EQ(step.size(), 1u);
  const double begin = step[0]["ts"].get<double>();
  const double end = begin + step[0]["dur"].get<double>() + 1e-3;  // 1 ns: the format has us
  for (const char* name : {"upload step tensors", "copy activation", "submit", "wait"}) {
    const json found = named(events, "name", name);
    EXPECT_FALSE(found.empty()) << name;
    for (const json& event : found) {
      EXPECT_GE(event["ts"].get<double>(), begin) << name;
      EXPECT_LE(event["ts"].get<double>() + event["dur"].get<double>(), end) << name;
    }
  }
}

TEST(Trace, IsReadableWhateverANameHolds) {
  const TempDir folder;
  const auto path = folder.path() / "trace.json";
  auto trace = Trace::create(path);
  ASSERT_TRUE(trace.ok());
  TraceEvent event{1, "node", "quote \" \\ newline \n bad \xff", 5, 7, {}};
  event.arg("text", std::string("\x01\"}"));
  event.arg("not a number", std::nan(""));
  event.arg("count", int64_t{-3});
  (*trace)->add(event);
  ASSERT_TRUE((*trace)->finish().ok());
  const json events = read_json(path);
  ASSERT_TRUE(events.is_array());
  EXPECT_EQ(events[1]["args"]["text"], "\x01\"}");
  EXPECT_EQ(events[1]["args"]["count"], -3);
  EXPECT_EQ(events[1]["dur"], 0.007);
}

TEST(Trace, SaysWhyItCannotBeWritten) {
  const TempDir folder;
  const auto missing = Trace::create(folder.path() / "no" / "trace.json");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.status().code(), Code::kIo);
  EXPECT_NE(missing.status().message().find("No such file"), std::string::npos);
  auto full = Trace::create("/dev/full");
  ASSERT_TRUE(full.ok());
  EXPECT_EQ((*full)->finish().code(), Code::kIo);
}

}  // namespace
}  // namespace pavo
