// pavo: parses the command line, runs one subcommand, turns its Status into an exit code.
#include <csignal>
#include <exception>
#include <new>
#include <sstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "apps/cli/command.h"
#include "apps/cli/exit_code.h"
#include "apps/cli/io.h"
#include "core/plugin_guard.h"
#include "core/text.h"

namespace pavo::cli {

namespace {

// What went wrong with the command line, and where to read on.
int report_usage(const CLI::App& app, const std::string& fault, const std::string& first_word) {
  std::vector<std::string> names;
  std::string command = "pavo";
  for (const CLI::App* sub : app.get_subcommands(nullptr)) {
    names.push_back(sub->get_name());
    if (sub->parsed()) {
      command += " " + sub->get_name();
    }
  }
  std::string hint = "; `" + command + " --help` lists what there is";
  const bool unknown_command = command == "pavo" && !first_word.empty() && first_word[0] != '-';
  if (unknown_command) {
    const std::string nearest = nearest_name(first_word, names);
    note(
        "error: no command '" + first_word + "'" +
        (nearest.empty() ? "" : "; did you mean '" + nearest + "'?") + hint);
  } else {
    note("error: " + fault + hint);
  }
  return kExitUsage;
}

// Says what went wrong, if anything did.
int finish(const Status& status) {
  if (!status.ok() && status.code() != Code::kCancelled) {
    for (const std::string& line : split(status.message(), '\n')) {
      note("error: " + line);
    }
  }
  return exit_code(status);
}

int run_main(int argc, char** argv) {
  CLI::App app("Runs language models on Pascal and Volta GPUs, and on the CPU.", "pavo");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("pavo ") + PAVO_VERSION);
  app.get_formatter()->column_width(34);
  Action action;
  add_run(&app, &action);
  add_info(&app, &action);
  add_tokenize(&app, &action);
  add_logits(&app, &action);
  add_bench(&app, &action);
  add_doctor(&app, &action);
  add_config(&app, &action);
  add_conformance(&app, &action);
  const std::string first_word = argc > 1 ? argv[1] : "";
  if (argc < 2) {
    note("error: expected a command\n\n" + app.help());
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    std::ostringstream text;
    app.exit(asked, text, text);
    return finish(StandardOutput().write(text.str()));
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error.what(), first_word);
  }
  return finish(action());
}

}  // namespace

}  // namespace pavo::cli

int main(int argc, char** argv) {
  // A reader that goes away shows as an error of write(), which StandardOutput handles.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);  // the same for a file that may not grow: an error, not an end
  pavo::watch_crashes();
  try {
    return pavo::cli::run_main(argc, argv);
  } catch (const std::bad_alloc&) {
    pavo::cli::note("error: out of memory; try a smaller context (-c), batch (-b) or model");
  } catch (const std::exception& error) {
    pavo::cli::note(std::string("error: fault in pavo: ") + error.what());
  }
  return pavo::cli::kExitFailed;
}
