// Facts about the running process that decide what it may trust: where it lies, whether it runs
// with more rights than its user, where its private files go.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace pavo {

// True for a set-user-id or otherwise privileged start: the environment is then the attacker's.
bool elevated_privileges();

// A variable of the environment; nothing if it is unset or empty, or under elevated privileges.
std::optional<std::string> trusted_environment(const char* name);

// Absolute path of the running program; empty if the system does not say.
std::filesystem::path executable_path();

// $XDG_CACHE_HOME/pavo, else ~/.cache/pavo; empty if neither is known. Not created.
std::filesystem::path user_cache_directory();

}  // namespace pavo
