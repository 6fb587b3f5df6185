#include "core/device_select.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace pavo {
namespace {

PluginNote note(
    const std::string& id, const std::string& sass, const std::string& ptx, int toolkit = 12040) {
  auto parsed = parse_plugin_note(
      "id=" + id + "\nversion=1\nabi=0.1-1\nkind=cuda\nsass=" + sass + "\nptx=" + ptx +
      "\ntoolkit=12.4\ndriver_min=12020\n");
  EXPECT_TRUE(parsed.ok()) << parsed.status().message();
  PluginNote result = parsed.ok() ? *parsed : PluginNote();
  result.toolkit = toolkit;
  return result;
}

CudaDevice device(int32_t capability) {
  CudaDevice result;
  result.capability = capability;
  result.id = "GPU-" + std::to_string(capability);
  return result;
}

// What the toolkit's guide says of machine code and PTX, written down by hand. One letter per
// plugin: E exact, O older minor, P PTX, - refused.
struct Row {
  int32_t capability;
  int32_t driver;
  const char* expected;
};

TEST(MatchCode, FollowsTheGrid) {
  const std::vector<PluginNote> plugins = {
      note("sm60", "sm_60", ""),
      note("sm61", "sm_61", ""),
      note("sm70", "sm_70", ""),
      note("sm60-ptx", "sm_60", "compute_60"),
      note("ptx-only", "", "compute_60"),
      note("hopper", "sm_90a", "compute_90a"),
  };
  const Row rows[] = {
      {52, 12040, "------"},
      {60, 12040, "E--EP-"},
      {61, 12040, "OE-OP-"},
      {62, 12040, "OO-OP-"},
      {70, 12040, "--EPP-"},
      {72, 12040, "--OPP-"},
      {75, 12040, "--OPP-"},
      {80, 12040, "---PP-"},
      {86, 12040, "---PP-"},
      {90, 12040, "---PPE"},
      {120, 12080, "---PP-"},
      // Older than the toolkit, not older than the floor: machine code only.
      {60, 12020, "E--E--"},
      {61, 12020, "OE-O--"},
      {70, 12020, "--E---"},
      {90, 12020, "-----E"},
      // Newer drivers run what older ones ran.
      {61, 12090, "OE-OP-"},
      {70, 13000, "--EPP-"},
      // Older than every floor, and unknown.
      {60, 12010, "------"},
      {61, 11080, "------"},
      {70, 0, "------"},
  };
  for (const Row& row : rows) {
    std::string got;
    for (const PluginNote& plugin : plugins) {
      const CodeVerdict verdict = match_code(plugin, device(row.capability), row.driver);
      EXPECT_FALSE(verdict.text.empty());
      EXPECT_EQ(verdict.target == 0, verdict.match == CodeMatch::kRefused);
      got += "EOP-"[static_cast<int>(verdict.match)];
    }
    EXPECT_EQ(got, row.expected) << "capability " << row.capability << ", driver " << row.driver;
  }
}

TEST(MatchCode, NamesTheReason) {
  const PluginNote sm61 = note("sm61", "sm_61", "compute_61");
  EXPECT_EQ(match_code(sm61, device(61), 12040).text, "sm_61 code, made for this chip");
  EXPECT_EQ(match_code(sm61, device(62), 12040).text, "sm_61 code on a 6.2 chip: runs, not tuned");
  EXPECT_EQ(
      match_code(sm61, device(90), 12040).text,
      "compute_61 PTX on a 9.0 chip, compiled at first use: runs, not tuned");
  EXPECT_EQ(
      match_code(sm61, device(60), 12040).text,
      "the chip is 6.0, the plugin has code for sm_61 and PTX for compute_61");
  EXPECT_EQ(
      match_code(sm61, device(61), 11080).text,
      "needs a driver for CUDA 12.2 or newer, found 11.8; update the driver");
  EXPECT_NE(
      match_code(sm61, device(70), 12020).text.find("PTX of toolkit 12.4 needs a driver"),
      std::string::npos);
  CudaDevice closed = device(61);
  closed.compute_mode = ComputeMode::kProhibited;
  EXPECT_NE(match_code(sm61, closed, 12040).text.find("prohibited"), std::string::npos);
}

TEST(SelectDevices, GivesEachDeviceItsOwnPlugin) {
  const std::vector<PluginNote> plugins = {
      note("cuda-sm60", "sm_60", "compute_60"),
      note("cuda-sm61", "sm_61", "compute_61"),
      note("cuda-sm70", "sm_70", "compute_70")};
  const std::vector<CudaDevice> devices = {
      device(60), device(61), device(70), device(62), device(90), device(52)};
  const Selection selection = select_devices(devices, 12040, plugins);
  ASSERT_EQ(selection.owners.size(), devices.size());
  EXPECT_EQ(selection.owners[0], 0u);
  EXPECT_EQ(selection.owners[1], 1u);
  EXPECT_EQ(selection.owners[2], 2u);
  EXPECT_EQ(selection.owners[3], 1u);  // sm_61 is nearer to 6.2 than sm_60
  EXPECT_EQ(selection.owners[4], 2u);  // compute_70 is the nearest PTX
  EXPECT_FALSE(selection.owners[5].has_value());
  ASSERT_EQ(selection.grid.size(), devices.size() * plugins.size());
  for (size_t i = 0; i < selection.grid.size(); ++i) {
    const SelectionCell& cell = selection.grid[i];
    EXPECT_EQ(cell.device, i / plugins.size());
    EXPECT_EQ(cell.plugin, i % plugins.size());
    EXPECT_EQ(cell.owner, selection.owners[cell.device] == cell.plugin);
    EXPECT_FALSE(cell.text.empty());
  }
  EXPECT_NE(selection.grid[3].text.find("; cuda-sm61 serves this device"), std::string::npos);
}

TEST(SelectDevices, TakesTheNextBestAfterAVetoAndTheFirstOfEquals) {
  const std::vector<PluginNote> plugins = {
      note("first", "sm_61", ""), note("second", "sm_61", ""), note("older", "sm_60", "")};
  const std::vector<CudaDevice> devices = {device(61)};
  EXPECT_EQ(select_devices(devices, 12040, plugins).owners[0], 0u);
  const Selection selection =
      select_devices(devices, 12040, plugins, {{0, 0, "crashed"}, {0, 1, "hung"}});
  EXPECT_EQ(selection.owners[0], 2u);
  EXPECT_EQ(selection.grid[0].text, "crashed");
  EXPECT_EQ(selection.grid[1].text, "hung");
}

TEST(SelectDevices, HandlesNothing) {
  EXPECT_TRUE(select_devices({}, 0, {}).grid.empty());
  const Selection selection = select_devices({device(61)}, 12040, {});
  ASSERT_EQ(selection.owners.size(), 1u);
  EXPECT_FALSE(selection.owners[0].has_value());
}

}  // namespace
}  // namespace pavo
