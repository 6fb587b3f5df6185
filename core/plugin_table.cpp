#include "core/plugin_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <type_traits>
#include <utility>

#include "core/dynamic_library.h"

namespace pavo {
namespace {

Code code_of(int32_t code) {
  switch (code) {
    case PAVO_ERROR_INVALID_ARGUMENT:
    case PAVO_ERROR_UNSUPPORTED_FIELD:
      return Code::kInvalidArgument;
    case PAVO_ERROR_UNSUPPORTED:
    case PAVO_ERROR_VERSION:
      return Code::kUnsupported;
    case PAVO_ERROR_OUT_OF_MEMORY:
      return Code::kOutOfMemory;
    case PAVO_ERROR_NODE_FAILED:
      return Code::kNodeFailed;
    case PAVO_ERROR_DEVICE_LOST:
      return Code::kDeviceLost;
    case PAVO_ERROR_NO_DEVICE:
      return Code::kNoBackend;
    case PAVO_ERROR_TIMEOUT:
      return Code::kTimeout;
    case PAVO_ERROR_CANCELLED:
      return Code::kCancelled;
    default:
      return Code::kInternal;
  }
}

// A mandatory entry of the table: where it lies and how a message calls it.
struct Entry {
  size_t offset;
  const char* name;
};

#define PAVO_TABLE_ENTRY(member)               \
  Entry {                                      \
    offsetof(pavo_plugin_api, member), #member \
  }
constexpr Entry kMandatory[] = {
    PAVO_TABLE_ENTRY(options),
    PAVO_TABLE_ENTRY(plugin_create),
    PAVO_TABLE_ENTRY(plugin_destroy),
    PAVO_TABLE_ENTRY(device_count),
    PAVO_TABLE_ENTRY(device_info),
    PAVO_TABLE_ENTRY(query_nodes),
    PAVO_TABLE_ENTRY(pack_info),
    PAVO_TABLE_ENTRY(device_open),
    PAVO_TABLE_ENTRY(device_close),
    PAVO_TABLE_ENTRY(device_memory),
    PAVO_TABLE_ENTRY(device_self_test),
    PAVO_TABLE_ENTRY(buffer_create),
    PAVO_TABLE_ENTRY(buffer_destroy),
    PAVO_TABLE_ENTRY(buffer_host),
    PAVO_TABLE_ENTRY(pack),
    PAVO_TABLE_ENTRY(timeline_create),
    PAVO_TABLE_ENTRY(timeline_destroy),
    PAVO_TABLE_ENTRY(timeline_wait),
    PAVO_TABLE_ENTRY(copy),
    PAVO_TABLE_ENTRY(plan_create),
    PAVO_TABLE_ENTRY(plan_destroy),
    PAVO_TABLE_ENTRY(submit),
};
#undef PAVO_TABLE_ENTRY
// buffer_import and plan_timings are optional; a new function must be put in one of the two lists.
constexpr size_t kOptionalCount = 2;
static_assert(
    offsetof(pavo_plugin_api, options) + (std::size(kMandatory) + kOptionalCount) * sizeof(void*) ==
    sizeof(pavo_plugin_api));

Status bad(std::string text) {
  return Status(Code::kInvalidFile, std::move(text));
}

std::string version_text(uint32_t major, uint32_t minor) {
  return std::to_string(major) + "." + std::to_string(minor);
}

// A table of a newer minor than was agreed on: what this host does not know must be zero.
Status check_tail(const pavo_plugin_api* api) {
  constexpr size_t kMostBytes = 16 * sizeof(pavo_plugin_api);
  if (api->struct_size > kMostBytes) {
    return bad("the table claims " + std::to_string(api->struct_size) + " bytes, which is absurd");
  }
  const auto* bytes = reinterpret_cast<const unsigned char*>(api);
  for (size_t i = sizeof(pavo_plugin_api); i < api->struct_size; ++i) {
    if (bytes[i] != 0) {
      return bad(
          "byte " + std::to_string(i) + " of the table is set, but ABI " +
          version_text(PAVO_ABI_MAJOR, kHostMaxMinor) + " ends at " +
          std::to_string(sizeof(pavo_plugin_api)) +
          "; the plugin must answer with the table of the agreed version");
    }
  }
  return Status();
}

}  // namespace

pavo_error make_error() {
  pavo_error error = {};
  error.struct_size = sizeof error;
  return error;
}

Status plugin_status(int32_t code, const pavo_error& error, std::string_view what) {
  if (code == PAVO_OK) {
    return Status();
  }
  const size_t size = std::min<size_t>(error.message_size, sizeof error.message);
  std::string message = printable(std::string_view(error.message, size));
  if (message.empty()) {
    message = "failed with status " + std::to_string(code) + " and no message";
  }
  return Status(code_of(code), std::string(what) + ": " + message);
}

Result<PluginLibrary> open_plugin_library(const std::filesystem::path& path) {
  if (!path.is_absolute()) {
    return bad("expected an absolute path, got " + path.string());
  }
  const Result<DynamicLibrary> library = DynamicLibrary::open(path);
  if (!library.ok()) {
    return library.status().with_context("cannot be loaded");
  }
  const PluginLibrary plugin = {
      library->function<std::remove_pointer_t<pavo_plugin_query_fn>>(PAVO_PLUGIN_QUERY_NAME)};
  if (plugin.query == nullptr) {
    return bad("does not export " PAVO_PLUGIN_QUERY_NAME);
  }
  return plugin;
}

Result<const pavo_plugin_api*> query_plugin(PluginLibrary library, const pavo_host_api* host) {
  const pavo_plugin_api* api = nullptr;
  pavo_error error = make_error();
  int32_t code = PAVO_OK;
  try {
    code = library.query(PAVO_ABI_MAJOR, kHostMinMinor, kHostMaxMinor, host, &api, &error);
  } catch (...) {
    return bad(PAVO_PLUGIN_QUERY_NAME " threw an exception; nothing may be thrown across the ABI");
  }
  PAVO_RETURN_IF_ERROR(plugin_status(code, error, PAVO_PLUGIN_QUERY_NAME));
  return api;
}

Status check_plugin_table(const pavo_plugin_api* api, const PluginNote& note) {
  if (api == nullptr) {
    return bad("the table is NULL although " PAVO_PLUGIN_QUERY_NAME " succeeded");
  }
  if (api->struct_size < sizeof(pavo_plugin_api)) {
    return bad(
        "the table has " + std::to_string(api->struct_size) + " bytes, ABI " +
        version_text(PAVO_ABI_MAJOR, kHostMinMinor) + " needs " +
        std::to_string(sizeof(pavo_plugin_api)) + "; rebuild the plugin");
  }
  PAVO_RETURN_IF_ERROR(check_tail(api));
  if (api->abi_major != PAVO_ABI_MAJOR || api->abi_minor < kHostMinMinor ||
      api->abi_minor > kHostMaxMinor) {
    return bad(
        "the table says ABI " + version_text(api->abi_major, api->abi_minor) +
        ", this program talks " + version_text(PAVO_ABI_MAJOR, kHostMinMinor) + " to " +
        version_text(PAVO_ABI_MAJOR, kHostMaxMinor) + "; use matching builds");
  }
  for (const Entry& entry : kMandatory) {
    const void* function = nullptr;
    std::memcpy(&function, reinterpret_cast<const char*>(api) + entry.offset, sizeof function);
    if (function == nullptr) {
      return bad(std::string("the function ") + entry.name + " is NULL, but not optional");
    }
  }
  if (api->id.data == nullptr || std::string_view(api->id.data, api->id.size) != note.id) {
    const std::string_view id =
        api->id.data == nullptr
            ? std::string_view()
            : std::string_view(api->id.data, std::min<uint64_t>(api->id.size, 64));
    return bad("the table's id is \"" + printable(id) + "\", the note's is \"" + note.id + "\"");
  }
  return Status();
}

}  // namespace pavo
