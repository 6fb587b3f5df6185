// pavo config: the settings as they are, and their reference.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "apps/cli/command.h"
#include "apps/cli/io.h"
#include "apps/cli/settings.h"

namespace pavo::cli {

namespace {

// Columns: key, value, source.
std::string table(const std::vector<ConfigLine>& lines) {
  size_t key_width = 0;
  size_t value_width = 0;
  for (const ConfigLine& line : lines) {
    key_width = std::max(key_width, line.key.size());
    value_width = std::max(value_width, std::min<size_t>(line.value.size(), 40));
  }
  std::string text;
  for (const ConfigLine& line : lines) {
    std::string row = line.key;
    row.resize(std::max(row.size(), key_width + 2), ' ');
    row += line.value;
    row.resize(std::max(row.size() + 2, key_width + value_width + 4), ' ');
    text += row + line.source + "\n";
  }
  return text;
}

Status check(const SettingFlags& flags) {
  PAVO_ASSIGN_OR_RETURN(const Config config, load_settings(flags));
  return StandardOutput().write(table(config_lines(config)));
}

}  // namespace

void add_config(CLI::App* app, Action* action) {
  CLI::App* command = app->add_subcommand("config", "show the settings and where they come from");
  command->require_subcommand(1);
  const auto flags = std::make_shared<SettingFlags>();
  CLI::App* checked =
      command->add_subcommand("check", "print every setting with its source, or all faults");
  add_run_settings(checked, flags.get());
  add_common_settings(checked, flags.get());
  checked->callback([flags, action] { *action = [flags] { return check(*flags); }; });
  command->add_subcommand("docs", "print the reference of all settings")->callback([action] {
    *action = [] { return StandardOutput().write(config_reference()); };
  });
}

}  // namespace pavo::cli
