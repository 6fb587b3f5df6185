// The one place where a Status becomes what the shell sees. README.md, "Exit codes".
#pragma once

#include "core/status.h"

namespace pavo::cli {

inline constexpr int kExitOk = 0;
inline constexpr int kExitFailed = 1;         // at run time
inline constexpr int kExitUsage = 2;          // wrong command line or setting
inline constexpr int kExitFile = 3;           // unusable model or input file
inline constexpr int kExitNoBackend = 4;      // nothing here can run it
inline constexpr int kExitInterrupted = 130;  // as the shell reports a program ended by Ctrl-C

int exit_code(const Status& status);

}  // namespace pavo::cli
