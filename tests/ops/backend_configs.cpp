// Which plugins the tests of this build run on; apart from the harness, which knows no build
// folder.
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <sstream>

#include "tests/ops/backend.h"

namespace pavo::test {
namespace {

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

BackendConfig parse_config(const std::string& text) {
  BackendConfig config;
  const std::vector<std::string> parts = split(text, ',');
  config.path = std::filesystem::absolute(parts.at(0)).string();
  config.label = std::filesystem::path(config.path).stem().string();
  for (size_t i = 1; i < parts.size(); ++i) {
    const size_t equals = parts[i].find('=');
    if (equals == std::string::npos) {
      throw std::runtime_error("PAVO_TEST_PLUGINS: expected option=value, got " + parts[i]);
    }
    config.options[parts[i].substr(0, equals)] = parts[i].substr(equals + 1);
    config.label += "_" + parts[i];
  }
  for (char& c : config.label) {
    c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return config;
}

}  // namespace

const std::vector<BackendConfig>& backend_configs() {
  static const std::vector<BackendConfig> configs = [] {
    const char* text = std::getenv("PAVO_TEST_PLUGINS");
    const std::string list = text != nullptr ? text
                                             : PAVO_CPU_PLUGIN
                                 ",reference=1,threads=2;" PAVO_CPU_PLUGIN ",threads=3";
    std::vector<BackendConfig> parsed;
    for (const std::string& item : split(list, ';')) {
      parsed.push_back(parse_config(item));
    }
    return parsed;
  }();
  return configs;
}

}  // namespace pavo::test
