// Status and Result<T>: how every fallible function of core, llm and apps reports failure.
// Nothing throws across a module; a message says what was expected, what was found, what to try.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace pavo {

// Grouped so that the command line can map each to an exit code (docs/architecture.md, "Errors").
enum class Code : int32_t {
  kOk = 0,
  kInvalidArgument,  // caller's options or request are wrong (exit 2)
  kInvalidFile,      // a model or input file is unusable (exit 3)
  kNoBackend,        // no backend or device can serve the request (exit 4)
  kUnsupported,      // well-formed but outside of what this build can do
  kOutOfMemory,      // retry smaller or elsewhere
  kNodeFailed,       // one graph node failed on a device; the device is still usable
  kDeviceLost,       // the device's context is gone
  kCancelled,        // the user or a caller asked to stop
  kTimeout,
  kIo,        // reading or writing failed
  kInternal,  // a fault of ours
};

const char* code_name(Code code);

class [[nodiscard]] Status {
 public:
  Status() = default;
  Status(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  bool ok() const { return code_ == Code::kOk; }
  Code code() const { return code_; }
  const std::string& message() const { return message_; }
  // "invalid file: <message>"
  std::string to_string() const;
  // Prefixes the message, for callers that know more ("tokenizer: ...").
  Status with_context(const std::string& context) const {
    return ok() ? *this : Status(code_, context + ": " + message_);
  }

 private:
  Code code_ = Code::kOk;
  std::string message_;
};

template <typename T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return Status(...)` both read well.
  Result(T value) : value_(std::move(value)) {}          // NOLINT(google-explicit-constructor)
  Result(Status status) : status_(std::move(status)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  T& value() & { return *value_; }
  const T& value() const& { return *value_; }
  T&& value() && { return std::move(*value_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

}  // namespace pavo

// Returns early with the status of a failed expression.
#define PAVO_RETURN_IF_ERROR(expr)        \
  do {                                    \
    ::pavo::Status pavo_status_ = (expr); \
    if (!pavo_status_.ok()) {             \
      return pavo_status_;                \
    }                                     \
  } while (false)

#define PAVO_CONCAT_INNER(a, b) a##b
#define PAVO_CONCAT(a, b) PAVO_CONCAT_INNER(a, b)
// PAVO_ASSIGN_OR_RETURN(auto x, make_x()); returns early with the status, else moves the value out.
#define PAVO_ASSIGN_OR_RETURN(lhs, expr) \
  PAVO_ASSIGN_OR_RETURN_IMPL(PAVO_CONCAT(pavo_result_, __LINE__), lhs, expr)
#define PAVO_ASSIGN_OR_RETURN_IMPL(tmp, lhs, expr) \
  auto tmp = (expr);                               \
  if (!tmp.ok()) {                                 \
    return tmp.status();                           \
  }                                                \
  lhs = std::move(tmp).value()
