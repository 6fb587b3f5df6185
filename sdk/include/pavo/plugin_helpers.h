// C++17 helpers for plugin authors: errors, exception barriers, growing structs, verdicts.
// Header only; nothing of it crosses the ABI.
#pragma once

#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <string_view>

#include "pavo/plugin.h"

namespace pavo::sdk {

inline std::string_view view(const pavo_string& string) {
  return string.size == 0 ? std::string_view() : std::string_view(string.data, string.size);
}

// `text` must outlive the result.
inline pavo_string string(std::string_view text) {
  return pavo_string{text.data(), text.size()};
}

inline int32_t device_state_of(int32_t code) {
  switch (code) {
    case PAVO_ERROR_OUT_OF_MEMORY:
      return PAVO_DEVICE_STATE_OOM;
    case PAVO_ERROR_NODE_FAILED:
      return PAVO_DEVICE_STATE_NODE_FAILED;
    case PAVO_ERROR_DEVICE_LOST:
      return PAVO_DEVICE_STATE_LOST;
    default:
      return PAVO_DEVICE_STATE_OK;
  }
}

// Fills *error and returns code. Long messages are cut.
__attribute__((format(printf, 3, 4))) inline int32_t fail(
    pavo_error* error, int32_t code, const char* format, ...) {
  if (error != nullptr && error->struct_size >= sizeof(pavo_error)) {
    va_list args;
    va_start(args, format);
    const int written = std::vsnprintf(error->message, sizeof error->message, format, args);
    va_end(args);
    error->code = code;
    error->domain = PAVO_DOMAIN_PLUGIN;
    error->native_code = 0;
    error->device_state = device_state_of(code);
    const auto size = written < 0 ? 0u : static_cast<uint32_t>(written);
    error->message_size = size < sizeof error->message ? size : sizeof error->message - 1;
  }
  return code;
}

// An error on its way to a guard().
struct Error final : std::exception {
  int32_t code = PAVO_ERROR_INTERNAL;
  char message[sizeof(pavo_error::message)] = {};
  const char* what() const noexcept override { return message; }
};

[[noreturn]] __attribute__((format(printf, 2, 3))) inline void raise(
    int32_t code, const char* format, ...) {
  Error error;
  error.code = code;
  va_list args;
  va_start(args, format);
  std::vsnprintf(error.message, sizeof error.message, format, args);
  va_end(args);
  throw error;
}

// Runs `body`, which returns a status code; an exception becomes a status. Every entry of the table
// is such a trampoline, so that nothing is thrown through C frames.
template <typename Body>
int32_t guard(pavo_error* error, Body&& body) noexcept {
  try {
    return body();
  } catch (const Error& raised) {
    return fail(error, raised.code, "%s", raised.message);
  } catch (const std::bad_alloc&) {
    return fail(error, PAVO_ERROR_OUT_OF_MEMORY, "out of host memory");
  } catch (const std::exception& exception) {
    return fail(error, PAVO_ERROR_INTERNAL, "unexpected exception: %s", exception.what());
  } catch (...) {
    return fail(error, PAVO_ERROR_INTERNAL, "unexpected exception");
  }
}

// Reads a growing struct: *out gets what both sides know, the rest of it is zero. Refuses a struct
// of less than min_size bytes and one whose unknown tail is not zero.
template <typename T>
int32_t read_struct(const T* in, T* out, size_t min_size, const char* what, pavo_error* error) {
  if (in == nullptr || in->struct_size < min_size) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "%s: expected a struct of at least %zu bytes, got %u",
        what,
        min_size,
        in == nullptr ? 0u : in->struct_size);
  }
  const size_t known = in->struct_size < sizeof(T) ? in->struct_size : sizeof(T);
  const auto* bytes = reinterpret_cast<const unsigned char*>(in);
  for (size_t i = sizeof(T); i < in->struct_size; ++i) {
    if (bytes[i] != 0) {
      return fail(
          error,
          PAVO_ERROR_UNSUPPORTED_FIELD,
          "%s: byte %zu is set, but this plugin knows only %zu bytes; use a newer plugin",
          what,
          i,
          sizeof(T));
    }
  }
  std::memset(static_cast<void*>(out), 0, sizeof(T));
  std::memcpy(static_cast<void*>(out), in, known);
  out->struct_size = static_cast<uint32_t>(known);
  return PAVO_OK;
}

// Parameters of a node; the host guarantees the type by node.op.
template <typename Params>
const Params& params(const pavo_node& node) {
  return *static_cast<const Params*>(node.params);
}

// Operand by position, inputs first; NULL if it is absent.
inline const pavo_tensor* input(const pavo_graph& graph, const pavo_node& node, uint32_t index) {
  if (index >= node.input_count || node.inputs[index] == PAVO_NO_TENSOR) {
    return nullptr;
  }
  return graph.tensors[node.inputs[index]];
}

inline const pavo_tensor* output(const pavo_graph& graph, const pavo_node& node, uint32_t index) {
  if (index >= node.output_count || node.outputs[index] == PAVO_NO_TENSOR) {
    return nullptr;
  }
  return graph.tensors[node.outputs[index]];
}

inline int64_t element_count(const pavo_tensor& tensor) {
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    count *= tensor.shape[i];
  }
  return count;
}

// True if the elements lie row-major without gaps. Dimensions of size 1 may have any stride.
inline bool is_contiguous(const pavo_tensor& tensor) {
  int64_t expected = pavo_type_block_bytes(tensor.type);
  for (int32_t i = tensor.rank - 1; i >= 0; --i) {
    if (tensor.shape[i] != 1 && tensor.stride[i] != expected) {
      return false;
    }
    expected *= tensor.shape[i];
  }
  return true;
}

inline void copy_text(char* target, size_t size, std::string_view text) {
  const size_t count = text.size() < size ? text.size() : size - 1;
  std::memcpy(target, text.data(), count);
  target[count] = '\0';
}

// Resets a verdict, keeping struct_size.
inline void clear_verdict(pavo_verdict* verdict) {
  const uint32_t size = verdict->struct_size;
  std::memset(verdict, 0, size < sizeof *verdict ? size : sizeof *verdict);
  verdict->struct_size = size;
  verdict->operand = -1;
  verdict->attribute = -1;
  verdict->kv_rows_max = INT64_MAX;
}

// Writes a refusal; returns false so that `return refuse(...)` reads well in predicates.
__attribute__((format(printf, 7, 8))) inline bool refuse(
    pavo_verdict* verdict,
    int32_t reason,
    int32_t operand,
    int32_t attribute,
    int64_t expected,
    int64_t actual,
    const char* format,
    ...) {
  clear_verdict(verdict);
  verdict->decision = PAVO_REFUSE;
  verdict->reason = reason;
  verdict->operand = operand;
  verdict->attribute = attribute;
  verdict->expected = expected;
  verdict->actual = actual;
  va_list args;
  va_start(args, format);
  std::vsnprintf(verdict->text, sizeof verdict->text, format, args);
  va_end(args);
  return false;
}

// Negotiates the minor version as pavo_plugin_query must; *minor gets the highest common one.
inline int32_t negotiate(
    uint32_t abi_major,
    uint32_t host_min_minor,
    uint32_t host_max_minor,
    uint32_t* minor,
    pavo_error* error) {
  if (abi_major != PAVO_ABI_MAJOR || host_min_minor > PAVO_ABI_MINOR ||
      host_max_minor < host_min_minor) {
    return fail(
        error,
        PAVO_ERROR_VERSION,
        "the host talks ABI %u.%u to %u.%u, this plugin %u.0 to %u.%u; use matching builds",
        abi_major,
        host_min_minor,
        abi_major,
        host_max_minor,
        PAVO_ABI_MAJOR,
        PAVO_ABI_MAJOR,
        PAVO_ABI_MINOR);
  }
  *minor = host_max_minor < PAVO_ABI_MINOR ? host_max_minor : PAVO_ABI_MINOR;
  return PAVO_OK;
}

}  // namespace pavo::sdk
