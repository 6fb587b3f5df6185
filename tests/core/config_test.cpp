#include "core/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "pavo/quant.h"

#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class ConfigTest : public ::testing::Test {
 protected:
  void user(const std::string& text) { inputs_.user_file = folder_.write("user.toml", text); }
  void system(const std::string& text) { inputs_.system_file = folder_.write("system.toml", text); }
  void argument(const std::string& key, const std::string& value, const std::string& option) {
    inputs_.command_line.push_back({key, {value}, option});
  }

  Config load() {
    Result<Config> config = load_config(inputs_);
    EXPECT_TRUE(config.ok()) << config.status().to_string();
    return config.ok() ? *config : Config();
  }
  // The message of a load that must fail because of the user.
  std::string fault() {
    const Result<Config> config = load_config(inputs_);
    EXPECT_FALSE(config.ok());
    EXPECT_EQ(config.status().code(), Code::kInvalidArgument);
    return config.status().message();
  }

  test::TempDir folder_;
  ConfigInputs inputs_;
};

TEST_F(ConfigTest, DefaultsWithoutAnySource) {
  inputs_.cache_dir = "/tmp/cache";
  const Config config = load();
  EXPECT_EQ(config.backend.value, "auto");
  EXPECT_EQ(config.backend.source, "default");
  EXPECT_EQ(config.kv_type.value, "f16");
  EXPECT_EQ(config.fallback.value, "warn");
  EXPECT_TRUE(config.probe.value);
  EXPECT_EQ(config.cache_dir.value, "/tmp/cache");
  EXPECT_THAT(config.devices.value, IsEmpty());
  EXPECT_THAT(config.plugin_options, IsEmpty());
}

TEST_F(ConfigTest, EverySourceBeatsTheNextWeakerOne) {
  system("context = 1\n");
  EXPECT_EQ(load().context.value, 1);
  user("\n\ncontext = 2\n");
  EXPECT_EQ(load().context.value, 2);
  EXPECT_EQ(load().context.source, "user file " + inputs_.user_file + ":3");
  inputs_.environment["PAVO_CONTEXT"] = "3";
  EXPECT_EQ(load().context.value, 3);
  EXPECT_EQ(load().context.source, "PAVO_CONTEXT");
  argument("context", "4", "-c");
  EXPECT_EQ(load().context.value, 4);
  EXPECT_EQ(load().context.origin, ConfigOrigin::kCommandLine);
  EXPECT_EQ(load().context.source, "-c");
}

TEST_F(ConfigTest, FoldersOfAllSourcesAddUpStrongestFirst) {
  system("[plugin]\npath = ['/s']\n");
  user("[plugin]\npath = ['/u1', '/u2']\n");
  inputs_.environment["PAVO_PLUGIN_PATH"] = "/e1:/e2";
  inputs_.command_line.push_back({"plugin.path", {"/c1", "/c2"}, "--plugin-path"});
  std::vector<std::string> folders;
  std::vector<std::string> sources;
  for (const auto& place : load().plugin_path) {
    folders.push_back(place.value);
    sources.push_back(place.source.substr(0, place.source.find(' ')));
  }
  EXPECT_THAT(folders, ElementsAre("/c1", "/c2", "/e1", "/e2", "/u1", "/u2", "/s"));
  EXPECT_THAT(
      sources,
      ElementsAre(
          "--plugin-path",
          "--plugin-path",
          "PAVO_PLUGIN_PATH",
          "PAVO_PLUGIN_PATH",
          "user",
          "user",
          "system"));
}

TEST_F(ConfigTest, ListsComeFromOneSource) {
  user("devices = ['cpu', 'GPU-1']\nplace = ['blk.*=cpu']\n");
  EXPECT_THAT(load().devices.value, ElementsAre("cpu", "GPU-1"));
  inputs_.environment["PAVO_DEVICES"] = "GPU-2, GPU-3";
  inputs_.environment["PAVO_PLACE"] = "a=cpu;b{1,2}=cuda-sm61";
  EXPECT_THAT(load().devices.value, ElementsAre("GPU-2", "GPU-3"));
  EXPECT_THAT(load().place.value, ElementsAre("a=cpu", "b{1,2}=cuda-sm61"));
}

TEST_F(ConfigTest, UnknownKeysAreErrorsWithTheNearestName) {
  user("kv_typ = 'f16'\n[plugin]\npat = []\n[zzz]\n  a = 1\n");
  EXPECT_THAT(
      fault(),
      AllOf(
          HasSubstr(inputs_.user_file + ":1:1: unknown setting 'kv_typ'; did you mean 'kv_type'?"),
          HasSubstr(":3:1: unknown setting 'plugin.pat'; did you mean 'plugin.path'?"),
          HasSubstr(":5:3: unknown setting 'zzz.a'; see docs/config.md")));
}

TEST_F(ConfigTest, EmptyTablesAreWrongOnlyIfNothingCanStandInThem) {
  user("[plugin.cpu]\n[backends]\n# rank = []\n");
  EXPECT_EQ(load().backends_rank.source, "default");
  user("[plugins]\n");
  EXPECT_THAT(fault(), HasSubstr(":1:2: unknown setting 'plugins'"));
}

TEST_F(ConfigTest, WrongTypesAndRangesSayWhatWasExpected) {
  user("context = 'many'\nprobe = 1\nbackend = 3\ndevices = 'cpu'\nplace = [1]\n");
  EXPECT_THAT(
      fault(),
      AllOf(
          HasSubstr(":1:11: context: expected integer 0..134217728, got 'many'"),
          HasSubstr(":2:9: probe: expected true or false, got 1"),
          HasSubstr(":3:11: backend: expected text, got 3"),
          HasSubstr(":4:11: devices: expected list of texts, got 'cpu'"),
          HasSubstr(":5:9: place: expected list of texts, got a value of another kind")));
  user("threads = -1\nprobe_timeout_ms = 0\nfallback = 'eror'\nkv_type = 'q4_k'\nplace = ['x']\n");
  EXPECT_THAT(
      fault(),
      AllOf(
          HasSubstr("threads: expected integer 0..4096, got -1"),
          HasSubstr("probe_timeout_ms: expected integer 1..600000, got 0"),
          HasSubstr(
              "fallback: expected one of allow, warn, error, got 'eror'; did you mean 'error'?"),
          HasSubstr("kv_type: expected K or K,V, each one of f32, f16"),
          HasSubstr("place: placement rule: expected PATTERN=DEVICE")));
  EXPECT_THAT(fault(), HasSubstr("got 'q4_k'"));
}

TEST_F(ConfigTest, NumbersInTextMustBeWhole) {
  for (const char* text : {"12x", " 12", "1e3", "99999999999999999999", "-"}) {
    inputs_.environment["PAVO_CONTEXT"] = text;
    EXPECT_THAT(fault(), HasSubstr("PAVO_CONTEXT: context: expected integer")) << text;
  }
  inputs_.environment["PAVO_CONTEXT"] = "";
  EXPECT_EQ(load().context.source, "default");
}

TEST_F(ConfigTest, FlagsInTextTakeTheUsualWords) {
  inputs_.environment["PAVO_PROBE"] = "off";
  EXPECT_FALSE(load().probe.value);
  inputs_.environment["PAVO_PROBE"] = "maybe";
  EXPECT_THAT(fault(), HasSubstr("expected true or false, got 'maybe'"));
}

TEST_F(ConfigTest, BrokenFilesAreNamed) {
  user("context = \n");
  EXPECT_THAT(fault(), HasSubstr(inputs_.user_file + ":1:11: not valid TOML: "));
  inputs_.user_file = folder_.path();
  EXPECT_THAT(fault(), HasSubstr("expected a file of settings, got a folder"));
  user(std::string((1 << 20) + 1, '#'));
  EXPECT_THAT(fault(), HasSubstr("at most 1 MiB"));
}

TEST_F(ConfigTest, AFileThatMayNotBeReadIsNamed) {
  user("context = 1\n");
  ASSERT_EQ(::chmod(inputs_.user_file.c_str(), 0), 0);
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  // Root may read every file, so become somebody else meanwhile.
  constexpr uid_t kNobody = 65534;
  const uid_t own = ::geteuid();
  ASSERT_EQ(::seteuid(own == 0 ? kNobody : own), 0);
  const std::string told = fault();
  ASSERT_EQ(::seteuid(own), 0);
  EXPECT_THAT(told, HasSubstr(inputs_.user_file + ": cannot be read: Permission denied"));
}

TEST_F(ConfigTest, OnlyAFileNamedExplicitlyMustExist) {
  inputs_.user_file = folder_.path() / "none.toml";
  EXPECT_EQ(load().backend.source, "default");
  inputs_.user_file_required = true;
  EXPECT_THAT(fault(), HasSubstr("none.toml: cannot be read"));
}

TEST_F(ConfigTest, PluginOptionsPassThrough) {
  user("[plugin.cpu]\nreference = true\nsplit = 0.5\nname = '7'\nthreads = 3\n");
  inputs_.environment["PAVO_PLUGIN_OPTIONS"] = "cuda-sm61.graphs=false,cpu.split=0.25";
  argument("plugin.cpu.name", "x", "--plugin-option");
  std::vector<std::string> lines;
  for (const PluginOption& option : load().plugin_options) {
    const std::string source = option.source.substr(0, option.source.find(' '));
    lines.push_back(option.plugin + "." + option.key + "=" + option.value + " " + source);
  }
  EXPECT_THAT(
      lines,
      ElementsAre(
          "cpu.name=x --plugin-option",
          "cpu.reference=1 user",
          "cpu.split=0.25 PAVO_PLUGIN_OPTIONS",
          "cpu.threads=3 user",
          "cuda-sm61.graphs=0 PAVO_PLUGIN_OPTIONS"));
}

TEST_F(ConfigTest, PluginOptionsOfOtherShapesAreRefused) {
  user("[plugin.cpu]\nlist = ['a']\n[plugin.cpu.inner]\na = 1\n");
  inputs_.environment["PAVO_PLUGIN_OPTIONS"] = "threads=4";
  EXPECT_THAT(
      fault(),
      AllOf(
          HasSubstr("plugin.cpu.list: expected an integer, a number, a text"),
          HasSubstr("unknown setting 'plugin.cpu.inner.a'"),
          HasSubstr("PAVO_PLUGIN_OPTIONS: unknown setting 'plugin.threads'")));
}

TEST_F(ConfigTest, ThreadsIsTheCpuPluginsOption) {
  user("threads = 3\n");
  ASSERT_EQ(load().plugin_options.size(), 1u);
  EXPECT_EQ(load().plugin_options[0].plugin, "cpu");
  EXPECT_EQ(load().plugin_options[0].value, "3");
  // A stronger source wins, whichever of the two names it uses.
  inputs_.environment["PAVO_PLUGIN_OPTIONS"] = "cpu.threads=5";
  EXPECT_EQ(load().threads.value, 5);
  EXPECT_EQ(load().threads.source, "PAVO_PLUGIN_OPTIONS");
  argument("threads", "7", "--threads");
  EXPECT_EQ(load().plugin_options[0].value, "7");
  EXPECT_EQ(load().plugin_options[0].source, "--threads");
}

TEST_F(ConfigTest, VariablesThatLookLikeSettingsAreWarnedAbout) {
  inputs_.environment["PAVO_KV_TYP"] = "f16";
  inputs_.environment["PAVO_SOMETHING_ELSE"] = "1";
  inputs_.environment["PATH"] = "/bin";
  EXPECT_THAT(load().warnings, ElementsAre(HasSubstr("did you mean PAVO_KV_TYPE?")));
}

TEST_F(ConfigTest, LinesShowEveryKeyWithItsSource) {
  user("kv_type = 'q8_0,f16'\n[plugin.cpu]\nreference = 1\n");
  const std::vector<ConfigLine> lines = config_lines(load());
  EXPECT_EQ(lines.size(), config_schema().size() + 1);
  EXPECT_EQ(lines.back().key, "plugin.cpu.reference");
  bool seen = false;
  for (const ConfigLine& line : lines) {
    seen = seen || (line.key == "kv_type" && line.value == "q8_0,f16" &&
                    line.source == "user file " + inputs_.user_file + ":1");
  }
  EXPECT_TRUE(seen);
}

TEST(ConfigSchema, DefaultsAreValidAndNamesUnique) {
  std::map<std::string, int> names;
  for (const ConfigKey& key : config_schema()) {
    EXPECT_EQ(++names[config_environment_name(key)], 1) << key.name;
    EXPECT_THAT(std::string(key.help), Not(HasSubstr("\n")));
    EXPECT_THAT(config_reference(), HasSubstr("| `" + std::string(key.name) + "` |"));
  }
}

TEST(KvTypes, OneNameIsBothTwoAreKThenV) {
  ASSERT_TRUE(kv_types_of("q8_KV"));
  EXPECT_EQ(kv_types_of("q8_KV")->k, PAVO_TYPE_Q8_KV);
  EXPECT_EQ(kv_types_of("q8_KV")->v, PAVO_TYPE_Q8_KV);
  EXPECT_EQ(kv_types_of("q8_0,f32")->k, PAVO_TYPE_Q8_0);
  EXPECT_EQ(kv_types_of("q8_0,f32")->v, PAVO_TYPE_F32);
  for (const char* text : {"", ",", "f16,", ",f16", "q4_k", "f16,f16,f16", "i32"}) {
    EXPECT_FALSE(kv_types_of(text)) << text;
  }
}

}  // namespace
}  // namespace pavo
