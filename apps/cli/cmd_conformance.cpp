// pavo conformance: hands over to pavo-conformance, which lies beside this program. The kit is no
// part of it: plugin authors need it, users of models do not.
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include "apps/cli/command.h"
#include "core/system.h"

namespace pavo::cli {

namespace {

Status run_kit(const std::vector<std::string>& words) {
  const std::filesystem::path program = executable_path().parent_path() / "pavo-conformance";
  std::vector<std::string> arguments = {program.string()};
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::vector<char*> pointers;
  pointers.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  pointers.push_back(nullptr);
  ::execv(program.c_str(), pointers.data());
  return Status(
      Code::kIo,
      program.string() + " cannot be started: " + std::strerror(errno) +
          "; it comes with the parts for plugin authors");
}

}  // namespace

void add_conformance(CLI::App* app, Action* action) {
  CLI::App* command =
      app->add_subcommand("conformance", "check whether a plugin keeps the rules of the interface");
  command->set_help_flag();  // the kit has its own
  command->prefix_command();
  command->callback(
      [command, action] { *action = [words = command->remaining()] { return run_kit(words); }; });
}

}  // namespace pavo::cli
