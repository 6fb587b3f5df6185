#include "apps/cli/exit_code.h"

namespace pavo::cli {

int exit_code(const Status& status) {
  switch (status.code()) {
    case Code::kOk:
      return kExitOk;
    case Code::kInvalidArgument:
      return kExitUsage;
    case Code::kInvalidFile:
    case Code::kUnsupported:  // a sound model of a kind that this build does not know
      return kExitFile;
    case Code::kNoBackend:
      return kExitNoBackend;
    case Code::kCancelled:
      return kExitInterrupted;
    case Code::kOutOfMemory:
    case Code::kNodeFailed:
    case Code::kDeviceLost:
    case Code::kTimeout:
    case Code::kIo:
    case Code::kInternal:
      return kExitFailed;
  }
  return kExitFailed;
}

}  // namespace pavo::cli
