#include "tests/conformance/plugin_under_test.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <sys/mman.h>
#include <unistd.h>

#include "pavo/plugin_helpers.h"

namespace pavo::conformance {

std::string message_of(const pavo_error& error) {
  const size_t size = std::min<size_t>(error.message_size, sizeof error.message);
  return printable(std::string_view(error.message, size), 300);
}

pavo_error poisoned_error() {
  pavo_error error;
  std::memset(&error, 0xa5, sizeof error);
  error.struct_size = sizeof error;
  return error;
}

std::string checked_error(Context& context, int32_t code, const pavo_error& error) {
  context.expect(
      error.code == code,
      "expected error.code to be the returned " + std::to_string(code) + ", found " +
          std::to_string(error.code));
  if (context.expect(
          error.message_size <= sizeof error.message,
          "expected message_size of at most " + std::to_string(sizeof error.message) + ", found " +
              std::to_string(error.message_size))) {
    context.expect(error.message_size > 0, "expected a message with every error, found none");
  }
  context.expect(error.struct_size == sizeof error, "expected error.struct_size to stay");
  return "code " + std::to_string(code) + ": " + message_of(error);
}

const pavo_plugin_api* load(Context& context, const pavo_host_api* host) {
  const auto library = open_plugin_library(context.options().plugin);
  if (!library.ok()) {
    context.fault(library.status().message());
    return nullptr;
  }
  const pavo_plugin_api* api = nullptr;
  pavo_error error = poisoned_error();
  const int32_t code =
      library->query(PAVO_ABI_MAJOR, PAVO_ABI_MINOR, PAVO_ABI_MINOR, host, &api, &error);
  if (code != PAVO_OK) {
    context.fault("pavo_plugin_query: " + checked_error(context, code, error));
    return nullptr;
  }
  if (api == nullptr || api->struct_size < sizeof(pavo_plugin_api)) {
    context.fault("expected a whole table from pavo_plugin_query");
    return nullptr;
  }
  return api;
}

OptionList::OptionList(
    const pavo_plugin_api& api, const std::map<std::string, std::string>& options)
    : texts_(options) {
  const pavo_option_info* const* infos = nullptr;
  uint32_t count = 0;
  pavo_error error = test::empty_error();
  if (api.options(&infos, &count, &error) != PAVO_OK) {
    count = 0;
  }
  for (const auto& [key, text] : texts_) {
    pavo_value value{};
    value.struct_size = sizeof value;
    value.type = PAVO_VALUE_STRING;
    value.key = sdk::string(key);
    for (uint32_t i = 0; i < count; ++i) {
      value.type = sdk::view(infos[i]->key) == key ? infos[i]->type : value.type;
    }
    value.int_value = std::atoll(text.c_str());
    value.float_value = std::atof(text.c_str());
    value.string_value = sdk::string(text);
    items_.push_back(value);
  }
  for (const pavo_value& item : items_) {
    pointers_.push_back(&item);
  }
  list_ = {sizeof list_, static_cast<uint32_t>(pointers_.size()), pointers_.data()};
}

std::vector<const pavo_option_info*> options_of(Context& context, const pavo_plugin_api& api) {
  const pavo_option_info* const* infos = nullptr;
  uint32_t count = 0;
  pavo_error error = poisoned_error();
  const int32_t code = api.options(&infos, &count, &error);
  if (code != PAVO_OK) {
    context.fault("options: " + checked_error(context, code, error));
    return {};
  }
  return {infos, infos + count};
}

Instance::Instance(Context& context, const pavo_plugin_api& api) : api_(api) {
  const OptionList options(api, context.options().options);
  pavo_error error = poisoned_error();
  const int32_t code = api.plugin_create(options.get(), &plugin_, &error);
  if (code != PAVO_OK) {
    context.fault("plugin_create: " + checked_error(context, code, error));
    plugin_ = nullptr;
  }
}

Instance::~Instance() {
  api_.plugin_destroy(plugin_);
}

std::vector<std::string> Instance::devices(Context& context) const {
  uint32_t count = 0;
  pavo_error error = poisoned_error();
  const int32_t code = api_.device_count(plugin_, &count, &error);
  if (code != PAVO_OK) {
    context.fault("device_count: " + checked_error(context, code, error));
    return {};
  }
  std::vector<std::string> ids;
  for (uint32_t i = 0; i < count && i < 256; ++i) {
    pavo_device_info info{};
    info.struct_size = sizeof info;
    error = poisoned_error();
    const int32_t got = api_.device_info(plugin_, i, &info, &error);
    if (got != PAVO_OK) {
      context.fault("device_info: " + checked_error(context, got, error));
      return ids;
    }
    ids.emplace_back(sdk::view(info.id));
  }
  return ids;
}

bool has_device(Context& context) {
  const pavo_plugin_api* api = load(context, test::host_api());
  if (api == nullptr) {
    return false;
  }
  const Instance instance(context, *api);
  if (instance.get() == nullptr) {
    return false;
  }
  if (instance.devices(context).empty()) {
    context.skip("it finds no device here");
    return false;
  }
  return true;
}

AtPageEnd::AtPageEnd(const void* bytes, size_t size) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t kept = (size + page - 1) / page * page;
  mapped_ = kept + page;
  base_ = ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base_ == MAP_FAILED || ::mprotect(static_cast<char*>(base_) + kept, page, PROT_NONE) != 0) {
    throw std::runtime_error("the kit has no memory for a guard page");
  }
  data_ = static_cast<char*>(base_) + kept - size;
  std::memcpy(data_, bytes, size);
}

AtPageEnd::~AtPageEnd() {
  ::munmap(base_, mapped_);
}

}  // namespace pavo::conformance
