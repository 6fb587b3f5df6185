// L1 without a device: options, instances, the device list, structs of other sizes.
#include <algorithm>
#include <cstring>
#include <set>
#include <string>

#include "pavo/plugin_helpers.h"

#include "tests/conformance/checks.h"
#include "tests/conformance/plugin_under_test.h"
#include "tests/conformance/process_state.h"

namespace pavo::conformance {
namespace {

constexpr int kCycles = 20;

void check_options(Context& context) {
  const pavo_plugin_api* api = load(context, test::host_api());
  if (api == nullptr) {
    return;
  }
  std::set<std::string> keys;
  for (const pavo_option_info* info : options_of(context, *api)) {
    const std::string key(sdk::view(info->key));
    context.stage("option " + printable(key, 40));
    context.expect(!key.empty() && printable(key) == key, "expected a printable key");
    context.expect(keys.insert(key).second, "expected a key of its own, found it twice");
    context.expect(info->text.size > 0, "expected a text for people");
    context.expect(
        info->type >= PAVO_VALUE_INT && info->type <= PAVO_VALUE_STRING,
        "expected a type of 0..2, found " + std::to_string(info->type));
  }
}

// Creates with one option; what comes out must be an error with the key in its message.
void expect_refused(
    Context& context, const pavo_plugin_api& api, const pavo_value& value, const std::string& key) {
  const pavo_value* const items[] = {&value};
  const pavo_values list = {sizeof list, 1, items};
  pavo_plugin* plugin = nullptr;
  pavo_error error = poisoned_error();
  const int32_t code = api.plugin_create(&list, &plugin, &error);
  if (!context.expect(
          code == PAVO_ERROR_INVALID_ARGUMENT,
          "expected PAVO_ERROR_INVALID_ARGUMENT, found code " + std::to_string(code))) {
    api.plugin_destroy(code == PAVO_OK ? plugin : nullptr);
    return;
  }
  const std::string text = checked_error(context, code, error);
  context.expect(plugin == nullptr, "expected the output to be untouched");
  context.expect(
      text.find(key) != std::string::npos, "expected the key in the message, found " + text);
}

void check_bad_options(Context& context) {
  const pavo_plugin_api* api = load(context, test::host_api());
  if (api == nullptr) {
    return;
  }
  pavo_value value{};
  value.struct_size = sizeof value;
  value.type = PAVO_VALUE_STRING;
  value.key = sdk::string("no_such_option");
  context.stage("unknown option");
  expect_refused(context, *api, value, "no_such_option");
  for (const pavo_option_info* info : options_of(context, *api)) {
    const std::string key(sdk::view(info->key));
    context.stage("wrong type of " + printable(key, 40));
    value.key = info->key;
    value.type = info->type == PAVO_VALUE_STRING ? PAVO_VALUE_FLOAT : PAVO_VALUE_STRING;
    value.string_value = sdk::string("no number");
    expect_refused(context, *api, value, key);
  }
}

// Instances come and go without leaving anything behind.
void check_cycles(Context& context) {
  const pavo_plugin_api* api = load(context, test::host_api());
  if (api == nullptr) {
    return;
  }
  // Once before, for what is made once and kept.
  static_cast<void>(Instance(context, *api).devices(context));
  const ProcessState before = ProcessState::now();
  const int64_t bytes = test::live_host_bytes();
  for (int i = 0; i < kCycles; ++i) {
    const Instance first(context, *api);
    const Instance second(context, *api);
    if (first.get() == nullptr || second.get() == nullptr) {
      return;
    }
    context.expect(first.get() != second.get(), "expected an instance of its own each time");
    static_cast<void>(first.devices(context));
  }
  api->plugin_destroy(nullptr);
  context.expect(
      test::live_host_bytes() == bytes,
      "expected all host memory to be given back, missing " +
          std::to_string(test::live_host_bytes() - bytes) + " bytes");
  for (const std::string& line : changes(before, ProcessState::now())) {
    context.fault(line);
  }
}

void check_caps(Context& context, const pavo_values* caps) {
  if (!context.expect(caps != nullptr, "expected caps, found NULL")) {
    return;
  }
  std::set<std::string> keys;
  bool arch = false;
  for (uint32_t i = 0; i < caps->count; ++i) {
    const pavo_value& value = *caps->items[i];
    const std::string key(sdk::view(value.key));
    context.expect(value.struct_size >= sizeof value, "expected a whole pavo_value in caps");
    context.expect(!key.empty() && keys.insert(key).second, "expected each cap once: " + key);
    context.expect(
        value.type >= PAVO_VALUE_INT && value.type <= PAVO_VALUE_STRING,
        "expected a type of 0..2 of the cap " + key);
    arch |= key == PAVO_CAP_ARCH && value.type == PAVO_VALUE_STRING;
  }
  context.expect(arch, "expected the cap \"" PAVO_CAP_ARCH "\" as a text");
}

void check_devices(Context& context) {
  const pavo_plugin_api* api = load(context, test::host_api());
  if (api == nullptr) {
    return;
  }
  const Instance instance(context, *api);
  if (instance.get() == nullptr) {
    return;
  }
  const ProcessState before = ProcessState::now();
  const std::vector<std::string> ids = instance.devices(context);
  context.expect(instance.devices(context) == ids, "expected the same list every time");
  std::set<std::string> seen;
  for (uint32_t i = 0; i < ids.size(); ++i) {
    context.stage("device " + printable(ids[i], 60));
    context.expect(!ids[i].empty() && printable(ids[i]) == ids[i], "expected a printable id");
    context.expect(seen.insert(ids[i]).second, "expected an id of its own");
    pavo_device_info info{};
    info.struct_size = sizeof info;
    pavo_error error = poisoned_error();
    if (api->device_info(instance.get(), i, &info, &error) == PAVO_OK) {
      context.expect(info.name.size > 0, "expected a name");
      context.expect(info.struct_size == sizeof info, "expected struct_size to stay");
      check_caps(context, info.caps);
    }
  }
  context.stage("device behind the last");
  pavo_device_info info{};
  info.struct_size = sizeof info;
  pavo_error error = poisoned_error();
  const int32_t code =
      api->device_info(instance.get(), static_cast<uint32_t>(ids.size()), &info, &error);
  if (context.expect(code != PAVO_OK, "expected an error")) {
    checked_error(context, code, error);
  }
  context.stage("");
  // Threads begin with device_open; a driver may open files when it is asked for its devices.
  const ProcessState after = ProcessState::now();
  context.expect(
      after.threads <= before.threads,
      "expected no thread before device_open, found " +
          std::to_string(after.threads - before.threads));
  context.note(std::to_string(ids.size()) + " devices");
}

void check_no_device(Context& context) {
  const pavo_plugin_api* api = load(context, test::host_api());
  if (api == nullptr) {
    return;
  }
  const Instance instance(context, *api);
  if (instance.get() == nullptr) {
    return;
  }
  for (const char* name : {"no such device", ""}) {
    const pavo_string id = sdk::string(name);
    pavo_device* device = nullptr;
    pavo_error error = poisoned_error();
    const int32_t code = api->device_open(instance.get(), &id, &device, &error);
    context.stage(std::string("device \"") + name + "\"");
    if (context.expect(
            code == PAVO_ERROR_NO_DEVICE,
            "expected PAVO_ERROR_NO_DEVICE, found code " + std::to_string(code))) {
      checked_error(context, code, error);
      context.expect(device == nullptr, "expected the output to be untouched");
    }
  }
}

// What is behind the bytes that both sides know is refused if it is set, and not looked at if it is
// not there.
void check_structs(Context& context) {
  const pavo_plugin_api* api = load(context, test::host_api());
  if (api == nullptr) {
    return;
  }
  struct Long {
    pavo_values list;
    uint64_t tail;
  };
  for (const uint64_t tail : {uint64_t{0}, uint64_t{1} << 63}) {
    context.stage(tail == 0 ? "longer pavo_values, zeros" : "longer pavo_values, a byte set");
    const Long values = {{sizeof(Long), 0, nullptr}, tail};
    pavo_plugin* plugin = nullptr;
    pavo_error error = poisoned_error();
    const int32_t code = api->plugin_create(&values.list, &plugin, &error);
    const int32_t wanted = tail == 0 ? PAVO_OK : PAVO_ERROR_UNSUPPORTED_FIELD;
    context.expect(
        code == wanted,
        "expected code " + std::to_string(wanted) + ", found " + std::to_string(code));
    api->plugin_destroy(code == PAVO_OK ? plugin : nullptr);
  }
  context.stage("short pavo_error");
  // Room for the codes alone; behind it lies a page that ends the process.
  pavo_error small = test::empty_error();
  small.struct_size = offsetof(pavo_error, message);
  const AtPageEnd short_error(&small, small.struct_size);
  const pavo_string nowhere = sdk::string("no such device");
  pavo_device* device = nullptr;
  const Instance instance(context, *api);
  if (instance.get() == nullptr) {
    return;
  }
  api->device_open(instance.get(), &nowhere, &device, short_error.as<pavo_error>());
  context.expect(device == nullptr, "expected an error");
  context.stage("short pavo_device_info");
  pavo_device_info info{};
  info.struct_size = offsetof(pavo_device_info, name);
  const AtPageEnd short_info(&info, info.struct_size);
  pavo_error error = poisoned_error();
  const int32_t code =
      api->device_info(instance.get(), 0, short_info.as<pavo_device_info>(), &error);
  if (code != PAVO_OK) {
    checked_error(context, code, error);
  }
}

}  // namespace

std::vector<Check> instance_checks() {
  return {
      {"L1.options", "options have keys, types and texts", check_options},
      {"L1.bad_options", "unknown and wrong options are named", check_bad_options},
      {"L1.cycles", "instances leave nothing behind", check_cycles},
      {"L1.devices", "the device list is stable, with ids and caps", check_devices},
      {"L1.no_device", "a device that is not there is a status", check_no_device},
      {"L1.structs", "structs of other sizes are read as far as both sides know", check_structs}};
}

}  // namespace pavo::conformance
