#include <string_view>

#include "pavo/plugin_helpers.h"

#include "tests/fakes/mock/breaks.h"
#include "tests/fakes/mock/device.h"
#include "tests/fakes/mock/options.h"

namespace pavo::mock {
namespace {

using sdk::fail;

constexpr int64_t kMaxDevices = 8;

constexpr pavo_string literal(std::string_view text) {
  return {text.data(), text.size()};
}

constexpr pavo_option_info option(
    int32_t type, std::string_view key, std::string_view text, std::string_view default_value) {
  return {sizeof(pavo_option_info), type, literal(key), literal(text), literal(default_value)};
}

constexpr pavo_option_info kOwn[] = {
    option(PAVO_VALUE_STRING, "refuse", "rules of what is refused: op[:condition...],...", ""),
    option(PAVO_VALUE_STRING, "only", "op,op: the only ops that are accepted; empty: all", ""),
    option(PAVO_VALUE_STRING, "fault", "call@n=kind,...: what goes wrong at the n-th call", ""),
    option(PAVO_VALUE_INT, "latency_us", "pause before each queued operation, microseconds", "0"),
    option(PAVO_VALUE_INT, "memory_bytes", "device memory", "4294967296"),
    option(PAVO_VALUE_INT, "devices", "devices to list, 0..8", "1"),
    option(PAVO_VALUE_INT, "one_queue", "1: copies and runs share a queue", "0")};

// Options of the CPU plugin inside that pass through.
bool passes_through(std::string_view key) {
  return key == "force_variant" || key == "reference" || key == "threads" || key == "simd";
}

struct Texts {
  std::string_view refuse;
  std::string_view only;
  std::string_view fault;
};

int32_t take_own(const pavo_value& value, Options* out, Texts* texts, pavo_error* error) {
  const std::string_view key = sdk::view(value.key);
  const std::string_view text = sdk::view(value.string_value);
  for (const pavo_option_info& info : kOwn) {
    if (sdk::view(info.key) != key) {
      continue;
    }
    if (value.type != info.type || value.int_value < 0) {
      return fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "option %.*s: expected %s",
          static_cast<int>(key.size()),
          key.data(),
          info.type == PAVO_VALUE_INT ? "a number of at least 0" : "a text");
    }
    if (info.type == PAVO_VALUE_STRING) {
      (key == "refuse" ? texts->refuse : key == "only" ? texts->only : texts->fault) = text;
    } else {
      (key == "latency_us"     ? out->latency_us
       : key == "memory_bytes" ? out->memory_bytes
       : key == "devices"      ? out->devices
                               : out->one_queue) = value.int_value;
    }
    return PAVO_OK;
  }
  if (breaks("take_any_option")) {
    return PAVO_OK;
  }
  return fail(
      error,
      PAVO_ERROR_INVALID_ARGUMENT,
      "the mock has no option '%.*s'",
      static_cast<int>(key.size()),
      key.data());
}

pavo_value make_value(const char* key, int32_t type, int64_t number, const char* text) {
  pavo_value value = {};
  value.struct_size = sizeof value;
  value.type = type;
  value.key = sdk::string(key);
  value.int_value = number;
  value.float_value = static_cast<double>(number);
  value.string_value = sdk::string(text);
  return value;
}

}  // namespace

int32_t list_options(const pavo_option_info* const** out, uint32_t* count, pavo_error* error) {
  static std::vector<const pavo_option_info*> list;
  if (list.empty()) {
    const pavo_option_info* const* inner = nullptr;
    uint32_t inner_count = 0;
    const int32_t code = inner_api->options(&inner, &inner_count, error);
    if (code != PAVO_OK) {
      return code;
    }
    for (const pavo_option_info& info : kOwn) {
      list.push_back(&info);
    }
    for (uint32_t i = 0; i < inner_count; ++i) {
      if (passes_through(sdk::view(inner[i]->key))) {
        list.push_back(inner[i]);
      }
    }
  }
  *out = list.data();
  *count = static_cast<uint32_t>(list.size());
  return PAVO_OK;
}

Instance::~Instance() {
  if (inner != nullptr) {
    inner_api->plugin_destroy(inner);
  }
}

int32_t Instance::init(const pavo_values* values, pavo_error* error) {
  // Later ones win in the CPU plugin: reference kernels on one thread unless the caller says else.
  const pavo_value defaults[] = {
      make_value("reference", PAVO_VALUE_INT, 1, ""), make_value("threads", PAVO_VALUE_INT, 1, "")};
  std::vector<const pavo_value*> passed = {&defaults[0], &defaults[1]};
  Texts texts;
  pavo_values given = {};
  if (values != nullptr && breaks("ignore_tail")) {
    given = *values;
  } else if (values != nullptr) {
    const int32_t code =
        sdk::read_struct(values, &given, sizeof(pavo_values), "pavo_values", error);
    if (code != PAVO_OK) {
      return code;
    }
  }
  for (uint32_t i = 0; i < given.count; ++i) {
    pavo_value value = {};
    int32_t code =
        sdk::read_struct(given.items[i], &value, sizeof(pavo_value), "pavo_value", error);
    const bool forced = sdk::view(value.key) == "force_variant";
    if (code == PAVO_OK && forced && breaks("ignore_force")) {
      continue;
    }
    if (code == PAVO_OK && passes_through(sdk::view(value.key))) {
      passed.push_back(given.items[i]);
    } else if (code == PAVO_OK) {
      code = take_own(value, &options, &texts, error);
    }
    if (code != PAVO_OK) {
      return code;
    }
  }
  if (breaks("leak_host_memory")) {
    host_api->alloc(host_api->context, 100, 4);
  }
  if (options.devices > kMaxDevices) {
    return fail(error, PAVO_ERROR_INVALID_ARGUMENT, "option devices: expected 0..8");
  }
  for (int64_t i = 0; i < options.devices; ++i) {
    ids.push_back("mock-" + std::to_string(i));
  }
  cap_items = {
      make_value(PAVO_CAP_ARCH, PAVO_VALUE_STRING, 0, "mock"),
      make_value(PAVO_CAP_NAME, PAVO_VALUE_STRING, 0, "Mock device"),
      make_value(PAVO_CAP_MEMORY_BYTES, PAVO_VALUE_INT, options.memory_bytes, ""),
      make_value(PAVO_CAP_BANDWIDTH, PAVO_VALUE_FLOAT, 100'000'000'000, "")};
  for (const pavo_value& item : cap_items) {
    cap_pointers.push_back(&item);
  }
  caps = {sizeof caps, static_cast<uint32_t>(cap_pointers.size()), cap_pointers.data()};
  const pavo_values list = {sizeof list, static_cast<uint32_t>(passed.size()), passed.data()};
  const int32_t code = rules.parse(texts.refuse, texts.only, texts.fault, error);
  return code == PAVO_OK ? inner_api->plugin_create(&list, &inner, error) : code;
}

}  // namespace pavo::mock
