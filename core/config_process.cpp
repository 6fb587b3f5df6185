// Where this process finds its settings.
#include <filesystem>

#include <unistd.h>

#include "core/config.h"
#include "core/system.h"

namespace pavo {

namespace {

std::string user_config_file() {
  // The specification tells to ignore relative values.
  if (const auto xdg = trusted_environment("XDG_CONFIG_HOME"); xdg && xdg->front() == '/') {
    return std::filesystem::path(*xdg) / "pavo" / "config.toml";
  }
  if (const auto home = trusted_environment("HOME"); home && home->front() == '/') {
    return std::filesystem::path(*home) / ".config" / "pavo" / "config.toml";
  }
  return "";
}

}  // namespace

ConfigInputs process_config_inputs(const std::string& file) {
  ConfigInputs inputs;
  if (!elevated_privileges()) {
    for (char** entry = environ; *entry != nullptr; ++entry) {
      const std::string_view text = *entry;
      const size_t equals = text.find('=');
      if (text.starts_with("PAVO_") && equals != std::string_view::npos) {
        inputs.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
      }
    }
  }
  inputs.user_file = file.empty() ? trusted_environment("PAVO_CONFIG").value_or("") : file;
  inputs.user_file_required = !inputs.user_file.empty();
  if (inputs.user_file.empty()) {
    inputs.user_file = user_config_file();
  }
  inputs.system_file = "/etc/pavo/config.toml";
  inputs.cache_dir = user_cache_directory();
  return inputs;
}

}  // namespace pavo
