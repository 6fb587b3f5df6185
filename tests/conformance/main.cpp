// pavo-conformance: puts a plugin through the conformance kit. `pavo conformance` starts it.
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <unistd.h>

#include "tests/conformance/runner.h"

namespace {

using namespace pavo;  // NOLINT(google-build-using-namespace): this file is a program
using conformance::CheckResult;
using conformance::Outcome;
using conformance::Report;

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr int kExitBadFile = 3;

struct Flags {
  conformance::RunnerOptions runner;
  std::vector<std::string> plugin_options;
  std::string one;  // a child of the runner: the id of its check
  std::string json_file;
  std::string junit_file;
  bool json = false;
  bool list = false;
  bool verbose = false;
};

void add_options(CLI::App* app, Flags* flags) {
  app->add_option("plugin", flags->runner.kit.plugin, "the plugin, a shared object")
      ->type_name("FILE.so");
  app->add_option("--plugin-option", flags->plugin_options, "an option of the plugin")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app->add_option(
         "--device-profile",
         flags->runner.kit.profile,
         "caps of a card that is not there: only predicates are checked")
      ->type_name("FILE.toml")
      ->check(CLI::ExistingFile);
  app->add_option("--only", flags->runner.filter, "only checks whose name holds this text")
      ->type_name("TEXT");
  app->add_option("--seed", flags->runner.kit.seed, "of the sampled cases")->capture_default_str();
  app->add_flag("--json", flags->json, "the report as JSON");
  app->add_option("--json-file", flags->json_file, "write the report as JSON")->type_name("FILE");
  app->add_option("--junit-file", flags->junit_file, "write the report for JUnit readers")
      ->type_name("FILE");
  app->add_flag("--list", flags->list, "show the checks and their rules");
  app->add_flag("-v,--verbose", flags->verbose, "show passed checks too");
  app->add_option("--one", flags->one)->group("");
}

int fail(const std::string& text, int code) {
  std::fprintf(stderr, "error: %s\n", text.c_str());
  return code;
}

bool write_file(const std::string& file, const std::string& text) {
  if (file.empty()) {
    return true;
  }
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.flush();
  return out.good();
}

int list_checks() {
  for (const conformance::Check& check : conformance::all_checks()) {
    std::printf("%s: %s\n", check.id.c_str(), check.rule.c_str());
  }
  return 0;
}

int report_result(const Flags& flags, const Report& report) {
  const std::string text = flags.json ? to_json(report) : to_text(report, flags.verbose);
  std::fputs(text.c_str(), stdout);
  for (const auto& [file, content] :
       {std::pair(flags.json_file, to_json(report)),
        std::pair(flags.junit_file, to_junit(report))}) {
    if (!write_file(file, content)) {
      return fail(file + " cannot be written", kExitFailed);
    }
  }
  return report.count(Outcome::kFailed) == 0 ? 0 : kExitFailed;
}

int run(Flags& flags) {
  if (flags.list) {
    return list_checks();
  }
  if (flags.runner.kit.plugin.empty()) {
    return fail("expected a plugin; `pavo conformance --help` lists the options", kExitUsage);
  }
  std::error_code error;
  flags.runner.kit.plugin = std::filesystem::absolute(flags.runner.kit.plugin, error).string();
  for (const std::string& option : flags.plugin_options) {
    const size_t equals = option.find('=');
    if (equals == std::string::npos) {
      return fail("--plugin-option: expected KEY=VALUE, got " + option, kExitUsage);
    }
    flags.runner.kit.options[option.substr(0, equals)] = option.substr(equals + 1);
  }
  if (!flags.one.empty()) {
    return run_as_child(flags.runner.kit, flags.one) ? 0 : kExitUsage;
  }
  const bool terminal = ::isatty(STDERR_FILENO) != 0;
  if (terminal) {
    flags.runner.on_result = [](const CheckResult& result) {
      std::fprintf(stderr, "\r\x1b[K%s %s", result.id.c_str(), outcome_name(result.outcome));
    };
  }
  const Result<Report> report = run_all(flags.runner);
  if (terminal) {
    std::fputs("\r\x1b[K", stderr);
  }
  if (!report.ok()) {
    const bool usage = report.status().code() == Code::kInvalidArgument;
    return fail(report.status().message(), usage ? kExitUsage : kExitBadFile);
  }
  return report_result(flags, *report);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app("Puts a plugin through the conformance kit.", "pavo conformance");
    Flags flags;
    add_options(&app, &flags);
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
      return app.exit(asked);
    } catch (const CLI::ParseError& bad) {
      return fail(bad.what(), kExitUsage);
    }
    return run(flags);
  } catch (const std::exception& error) {
    return fail(std::string("fault in the kit: ") + error.what(), kExitFailed);
  }
}
