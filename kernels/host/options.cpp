#include "kernels/host/options.h"

#include <algorithm>
#include <cinttypes>
#include <iterator>
#include <limits>
#include <string_view>

#include "pavo/plugin_helpers.h"

#include "kernels/host/error.h"

namespace pavo::cuda {
namespace {

struct OpName {
  int32_t op;
  const char* name;
};

#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) {id, #name},
constexpr OpName kOpNames[] = {
#include "pavo/ops.inc"
};
#undef PAVO_OP
#undef PAVO_FIELD

constexpr pavo_string literal(std::string_view text) {
  return {text.data(), text.size()};
}

constexpr pavo_option_info option(
    int32_t type, std::string_view key, std::string_view text, std::string_view default_value) {
  return {sizeof(pavo_option_info), type, literal(key), literal(text), literal(default_value)};
}

constexpr pavo_option_info kOptions[] = {
    option(
        PAVO_VALUE_INT,
        "memory_budget_bytes",
        "most device memory to take, per device, in bytes; 0: no limit but the device's",
        "0"),
    option(
        PAVO_VALUE_INT,
        "any_device",
        "1: also devices for which the driver must compile the plugin's PTX, 0: only devices of "
        "the plugin's own kind",
        "1"),
    option(PAVO_VALUE_INT, "graphs", "1: replay captured CUDA graphs, 0: launch each kernel", "1"),
    option(PAVO_VALUE_INT, "timings", "1: measure each node (turns graphs off), 0: do not", "0"),
    option(
        PAVO_VALUE_INT,
        "sync",
        "1: wait after each node, so that errors name it (turns graphs off), 0: do not",
        "0"),
    option(PAVO_VALUE_INT, "recheck", "1: ask the predicate again at each launch, 0: do not", "0"),
    option(PAVO_VALUE_INT, "cublas", "1: open cuBLAS if it is there, 0: do not", "0"),
    option(
        PAVO_VALUE_INT,
        "fail_alloc_at",
        "for tests: number of the allocation that fails, from 1; 0: none; how many there were is "
        "logged when the device is closed",
        "0"),
    option(
        PAVO_VALUE_STRING,
        "force_variant",
        "op=kernel,op=kernel: the only kernel allowed for these ops",
        ""),
    option(PAVO_VALUE_STRING, "refuse", "op,op: ops that are refused, to try a fallback", ""),
};

const char* type_name(int32_t type) {
  constexpr const char* kNames[] = {"an integer", "a float", "a string"};
  return type >= 0 && type < static_cast<int32_t>(std::size(kNames)) ? kNames[type]
                                                                     : "an unknown type";
}

int32_t find_op(std::string_view name) {
  for (const OpName& op : kOpNames) {
    if (op.name == name) {
      return op.op;
    }
  }
  return -1;
}

std::string joined_op_names() {
  std::string names;
  for (const OpName& op : kOpNames) {
    names += (names.empty() ? "" : ", ") + std::string(op.name);
  }
  return names;
}

std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    if (comma > 0) {
      parts.push_back(text.substr(0, comma));
    }
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return parts;
}

int32_t parse_op(std::string_view key, std::string_view name, int32_t* op, pavo_error* error) {
  *op = find_op(name);
  if (*op < 0) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "option %.*s: expected an op (%s), got '%.*s'",
        static_cast<int>(key.size()),
        key.data(),
        joined_op_names().c_str(),
        static_cast<int>(std::min<size_t>(name.size(), 64)),
        name.data());
  }
  return PAVO_OK;
}

std::string kernel_names(const PluginInfo& info, int32_t op) {
  std::string names;
  for (const KernelList& family : info.families) {
    for (const Kernel& kernel : family) {
      if (kernel.op == op) {
        names += (names.empty() ? "" : ", ") + std::string(kernel.name);
      }
    }
  }
  return names;
}

bool has_kernel(const PluginInfo& info, int32_t op, std::string_view name) {
  return std::any_of(info.families.begin(), info.families.end(), [&](const KernelList& family) {
    return std::any_of(family.begin(), family.end(), [&](const Kernel& kernel) {
      return kernel.op == op && kernel.name == name;
    });
  });
}

int32_t parse_forced(
    const PluginInfo& info, std::string_view text, Options* out, pavo_error* error) {
  for (const std::string_view part : split(text)) {
    const size_t equals = std::min(part.find('='), part.size());
    const std::string_view name = part.substr(std::min(equals + 1, part.size()));
    int32_t op = 0;
    PAVO_TRY(parse_op("force_variant", part.substr(0, equals), &op, error));
    if (!has_kernel(info, op, name)) {
      return sdk::fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "option force_variant: expected a kernel of %s (%s), got '%.*s'",
          op_name(op),
          kernel_names(info, op).c_str(),
          static_cast<int>(std::min<size_t>(name.size(), 64)),
          name.data());
    }
    out->forced.emplace_back(op, name);
  }
  return PAVO_OK;
}

int32_t parse_int(std::string_view key, int64_t value, Options* out, pavo_error* error) {
  struct Flag {
    std::string_view key;
    bool* target;
  };
  const Flag flags[] = {
      {"any_device", &out->any_device},
      {"graphs", &out->graphs},
      {"timings", &out->timings},
      {"sync", &out->sync},
      {"recheck", &out->recheck},
      {"cublas", &out->cublas}};
  const auto* flag =
      std::find_if(std::begin(flags), std::end(flags), [&](const Flag& f) { return f.key == key; });
  const int64_t most = flag == std::end(flags) ? std::numeric_limits<int64_t>::max() : 1;
  if (value < 0 || value > most) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "option %.*s: expected 0..%" PRId64 ", got %" PRId64,
        static_cast<int>(key.size()),
        key.data(),
        most,
        value);
  }
  if (flag != std::end(flags)) {
    *flag->target = value == 1;
  } else if (key == "memory_budget_bytes") {
    out->memory_budget_bytes = value;
  } else {
    out->fail_alloc_at = value;
  }
  return PAVO_OK;
}

int32_t parse_string(
    const PluginInfo& info,
    std::string_view key,
    std::string_view value,
    Options* out,
    pavo_error* error) {
  if (key == "force_variant") {
    return parse_forced(info, value, out, error);
  }
  for (const std::string_view name : split(value)) {
    int32_t op = 0;
    PAVO_TRY(parse_op(key, name, &op, error));
    out->refused.push_back(op);
  }
  return PAVO_OK;
}

int32_t parse_option(
    const PluginInfo& info, const pavo_value& value, Options* out, pavo_error* error) {
  const std::string_view key = sdk::view(value.key);
  const auto* found = std::find_if(
      std::begin(kOptions), std::end(kOptions), [&](const pavo_option_info& candidate) {
        return sdk::view(candidate.key) == key;
      });
  if (found == std::end(kOptions)) {
    std::string keys;
    for (const pavo_option_info& candidate : kOptions) {
      keys += (keys.empty() ? "" : ", ") + std::string(sdk::view(candidate.key));
    }
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "%s: expected an option of %s, got '%.*s'",
        std::string(info.id).c_str(),
        keys.c_str(),
        static_cast<int>(std::min<size_t>(key.size(), 64)),
        key.data());
  }
  if (value.type != found->type) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "option %.*s: expected %s, got %s",
        static_cast<int>(key.size()),
        key.data(),
        type_name(found->type),
        type_name(value.type));
  }
  return value.type == PAVO_VALUE_INT
             ? parse_int(key, value.int_value, out, error)
             : parse_string(info, key, sdk::view(value.string_value), out, error);
}

}  // namespace

const char* op_name(int32_t op) {
  for (const OpName& candidate : kOpNames) {
    if (candidate.op == op) {
      return candidate.name;
    }
  }
  return "?";
}

const pavo_option_info* const* option_infos(uint32_t* count) {
  static const std::vector<const pavo_option_info*> kPointers = [] {
    std::vector<const pavo_option_info*> pointers;
    for (const pavo_option_info& info : kOptions) {
      pointers.push_back(&info);
    }
    return pointers;
  }();
  *count = static_cast<uint32_t>(kPointers.size());
  return kPointers.data();
}

int32_t parse_options(
    const PluginInfo& info, const pavo_values* values, Options* out, pavo_error* error) {
  *out = Options{};
  if (values == nullptr) {
    return PAVO_OK;
  }
  pavo_values list{};
  PAVO_TRY(sdk::read_struct(values, &list, sizeof(pavo_values), "pavo_values", error));
  for (uint32_t i = 0; i < list.count; ++i) {
    pavo_value value{};
    PAVO_TRY(sdk::read_struct(list.items[i], &value, sizeof(pavo_value), "pavo_value", error));
    PAVO_TRY(parse_option(info, value, out, error));
  }
  return PAVO_OK;
}

}  // namespace pavo::cuda
