// pavo doctor: where plugins were looked for, what was found, what each can use here and why not,
// and every setting with its source.
#include <memory>

#include "apps/cli/command.h"
#include "apps/cli/doctor_report.h"
#include "apps/cli/io.h"
#include "apps/cli/settings.h"

namespace pavo::cli {

namespace {

struct DoctorFlags {
  SettingFlags settings;
  bool json = false;
};

Status doctor(const DoctorFlags& flags) {
  PAVO_ASSIGN_OR_RETURN(const Config config, load_settings(flags.settings));
  RegistryOptions options = registry_options(config);
  options.always_read_devices = true;
  watch_plugins(config);
  const nlohmann::ordered_json report = doctor_json(Registry::discover(options), config);
  return StandardOutput().write(
      flags.json
          ? report.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n"
          : doctor_text(report));
}

}  // namespace

void add_doctor(CLI::App* app, Action* action) {
  CLI::App* command =
      app->add_subcommand("doctor", "show plugins, devices and settings, and what is wrong");
  const auto flags = std::make_shared<DoctorFlags>();
  command->add_flag("--json", flags->json, "as JSON");
  add_run_settings(command, &flags->settings);
  add_common_settings(command, &flags->settings);
  command->callback([flags, action] { *action = [flags] { return doctor(*flags); }; });
}

}  // namespace pavo::cli
