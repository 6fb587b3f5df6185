#include "core/system.h"

#include <cstdlib>
#include <system_error>

#include <sys/auxv.h>
#include <unistd.h>

namespace pavo {

bool elevated_privileges() {
  return getauxval(AT_SECURE) != 0;
}

std::optional<std::string> trusted_environment(const char* name) {
  if (elevated_privileges()) {
    return std::nullopt;
  }
  const char* value = std::getenv(name);
  if (value == nullptr || *value == '\0') {
    return std::nullopt;
  }
  return std::string(value);
}

std::filesystem::path executable_path() {
  std::error_code error;
  std::filesystem::path path = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::filesystem::path() : path;
}

std::filesystem::path user_cache_directory() {
  // The specification tells to ignore relative values.
  if (const auto xdg = trusted_environment("XDG_CACHE_HOME"); xdg && xdg->front() == '/') {
    return std::filesystem::path(*xdg) / "pavo";
  }
  if (const auto home = trusted_environment("HOME"); home && home->front() == '/') {
    return std::filesystem::path(*home) / ".cache" / "pavo";
  }
  return {};
}

}  // namespace pavo
