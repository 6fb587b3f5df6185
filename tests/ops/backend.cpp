#include "tests/ops/backend.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "pavo/plugin_helpers.h"

#include "core/plugin_table.h"

namespace pavo::test {
namespace {

std::atomic<int64_t> g_live_bytes{0};
std::atomic<int64_t> g_allocs_until_failure{0};
std::atomic<bool> g_alloc_failed{false};

constexpr uint64_t kMostBytes = uint64_t{1} << 40;  // beyond it some allocators end the process

void* host_alloc(void* /*context*/, uint64_t size, uint64_t alignment) {
  if (size > kMostBytes) {
    return nullptr;
  }
  if (g_allocs_until_failure > 0 && --g_allocs_until_failure == 0) {
    g_alloc_failed = true;
    return nullptr;
  }
  void* memory = std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  g_live_bytes += memory != nullptr ? static_cast<int64_t>(size) : 0;
  return memory;
}

void host_free(void* /*context*/, void* memory, uint64_t size) {
  g_live_bytes -= static_cast<int64_t>(size);
  std::free(memory);
}

void host_log(void* /*context*/, int32_t level, const char* message, uint64_t size) {
  if (level >= PAVO_LOG_WARN) {
    std::fprintf(stderr, "plugin: %.*s\n", static_cast<int>(size), message);
  }
}

constexpr pavo_host_api kHost = {
    sizeof(pavo_host_api),
    PAVO_ABI_MAJOR,
    PAVO_ABI_MINOR,
    0,
    nullptr,
    host_alloc,
    host_free,
    host_log};

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::stringstream stream(text);
  for (std::string part; std::getline(stream, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

void PrintTo(const BackendConfig& config, std::ostream* out) {
  *out << config.label;
}

const pavo_host_api* host_api() {
  return &kHost;
}

int64_t live_host_bytes() {
  return g_live_bytes;
}

void fail_host_alloc(int64_t n) {
  g_alloc_failed = false;
  g_allocs_until_failure = n;
}

bool host_alloc_failed() {
  return g_alloc_failed;
}

void require_ok(int32_t code, const pavo_error& error, const char* what) {
  if (code != PAVO_OK) {
    const size_t size = std::min<size_t>(error.message_size, sizeof error.message);
    throw StatusError(
        code,
        std::string(what) + ": status " + std::to_string(code) + ": " +
            std::string(error.message, size));
  }
}

Backend::Backend(const BackendConfig& config) : caps_(config.caps) {
  const auto library = open_plugin_library(config.path);
  if (!library.ok()) {
    throw std::runtime_error(library.status().to_string());
  }
  pavo_error error = empty_error();
  require_ok(
      library->query(PAVO_ABI_MAJOR, 0, PAVO_ABI_MINOR, &kHost, &api_, &error),
      error,
      PAVO_PLUGIN_QUERY_NAME);
  create(config);
  if (config.open_device) {
    try {
      open();
    } catch (...) {
      api_->plugin_destroy(plugin_);
      throw;
    }
  }
}

void Backend::open() {
  pavo_error error = empty_error();
  uint32_t count = 0;
  require_ok(api_->device_count(plugin_, &count, &error), error, "device_count");
  if (count == 0) {
    throw std::runtime_error("it finds no device");
  }
  info_.struct_size = sizeof info_;
  require_ok(api_->device_info(plugin_, 0, &info_, &error), error, "device_info");
  require_ok(api_->device_open(plugin_, &info_.id, &device_, &error), error, "device_open");
}

void Backend::create(const BackendConfig& config) {
  const pavo_option_info* const* infos = nullptr;
  uint32_t info_count = 0;
  pavo_error error = empty_error();
  require_ok(api_->options(&infos, &info_count, &error), error, "options");
  std::vector<pavo_value> values;
  for (const auto& [key, text] : config.options) {
    pavo_value value{};
    value.struct_size = sizeof value;
    value.type = PAVO_VALUE_STRING;
    value.key = sdk::string(key);
    for (uint32_t i = 0; i < info_count; ++i) {
      if (sdk::view(infos[i]->key) == key) {
        value.type = infos[i]->type;
      }
    }
    value.int_value = std::atoll(text.c_str());
    value.float_value = std::atof(text.c_str());
    value.string_value = sdk::string(text);
    values.push_back(value);
  }
  std::vector<const pavo_value*> pointers;
  pointers.reserve(values.size());
  for (const pavo_value& value : values) {
    pointers.push_back(&value);
  }
  const pavo_values list = {
      sizeof(pavo_values), static_cast<uint32_t>(pointers.size()), pointers.data()};
  require_ok(api_->plugin_create(&list, &plugin_, &error), error, "plugin_create");
}

Backend::~Backend() {
  if (device_ != nullptr) {
    api_->device_close(device_);
  }
  if (plugin_ != nullptr) {
    api_->plugin_destroy(plugin_);
  }
}

std::string Backend::option_text(const std::string& key) const {
  const pavo_option_info* const* infos = nullptr;
  uint32_t count = 0;
  pavo_error error = empty_error();
  require_ok(api_->options(&infos, &count, &error), error, "options");
  for (uint32_t i = 0; i < count; ++i) {
    if (sdk::view(infos[i]->key) == key) {
      return std::string(sdk::view(infos[i]->text));
    }
  }
  return {};
}

std::vector<std::string> Backend::variants(const std::string& op) const {
  const std::string text = option_text("force_variant");
  const std::string marker = "; values: ";
  const size_t start = text.find(marker);
  if (start == std::string::npos) {
    return {};
  }
  for (const std::string& item : split(text.substr(start + marker.size()), ',')) {
    if (item.rfind(op + "=", 0) == 0) {
      return split(item.substr(op.size() + 1), '|');
    }
  }
  return {};
}

}  // namespace pavo::test
