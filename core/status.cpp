#include "core/status.h"

namespace pavo {

const char* code_name(Code code) {
  switch (code) {
    case Code::kOk:
      return "ok";
    case Code::kInvalidArgument:
      return "invalid argument";
    case Code::kInvalidFile:
      return "unusable file";
    case Code::kNoBackend:
      return "no usable backend";
    case Code::kUnsupported:
      return "unsupported";
    case Code::kOutOfMemory:
      return "out of memory";
    case Code::kNodeFailed:
      return "node failed";
    case Code::kDeviceLost:
      return "device lost";
    case Code::kCancelled:
      return "cancelled";
    case Code::kTimeout:
      return "timeout";
    case Code::kIo:
      return "i/o error";
    case Code::kInternal:
      return "internal error";
  }
  return "unknown";
}

std::string Status::to_string() const {
  return message_.empty() ? code_name(code_) : std::string(code_name(code_)) + ": " + message_;
}

}  // namespace pavo
