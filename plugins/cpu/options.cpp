#include "plugins/cpu/options.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "pavo/plugin_helpers.h"

#include "plugins/cpu/kernel_table.h"
#include "plugins/cpu/op_info.h"
#include "plugins/cpu/simd_targets.h"
#include "plugins/cpu/thread_pool.h"

namespace pavo::cpu {
namespace {

constexpr int64_t kMaxThreads = 1024;

constexpr pavo_string literal(std::string_view text) {
  return {text.data(), text.size()};
}

constexpr pavo_option_info option(
    int32_t type, std::string_view key, std::string_view text, std::string_view default_value) {
  return {sizeof(pavo_option_info), type, literal(key), literal(text), literal(default_value)};
}

constexpr pavo_option_info kThreads = option(
    PAVO_VALUE_INT,
    "threads",
    "threads that compute, 0..1024; 0: one per core that the process may use",
    "0");
constexpr pavo_option_info kReference = option(
    PAVO_VALUE_INT, "reference", "1: only the slow reference kernels (double sums), 0: all", "0");
// "...; values: norm=reference|norm_rms,rope=...": tests force each kernel in turn.
const std::string& force_variant_text() {
  static const std::string text = [] {
    std::string list = "op=kernel,op=kernel: the only kernel allowed for these ops; values: ";
    for (const OpInfo& op : all_ops()) {
      list += op.op == all_ops().front().op ? "" : ",";
      list += std::string(op.name) + "=" + kernel_names(op.op, "|");
    }
    return list;
  }();
  return text;
}

constexpr pavo_option_info kRefuse =
    option(PAVO_VALUE_STRING, "refuse", "op,op: ops that are refused, to try a fallback", "");

const std::string& simd_text() {
  static const std::string text =
      "best instruction set to use, for the whole process; values: " + simd_target_names();
  return text;
}

constexpr std::string_view kSimdKey = "simd";
constexpr std::string_view kForceVariantKey = "force_variant";

std::span<const pavo_option_info* const> infos() {
  static const pavo_option_info force_variant =
      option(PAVO_VALUE_STRING, kForceVariantKey, force_variant_text(), "");
  static const pavo_option_info simd = option(PAVO_VALUE_STRING, kSimdKey, simd_text(), "");
  static const pavo_option_info* const list[] = {
      &kThreads, &kReference, &force_variant, &kRefuse, &simd};
  return list;
}

const char* type_name(int32_t type) {
  constexpr const char* kNames[] = {"an integer", "a float", "a string"};
  return type >= 0 && type <= PAVO_VALUE_STRING ? kNames[type] : "an unknown type";
}

std::string valid_keys() {
  std::string keys;
  for (const pavo_option_info* info : infos()) {
    keys += keys.empty() ? "" : ", ";
    keys += sdk::view(info->key);
  }
  return keys;
}

std::string op_names() {
  std::string names;
  for (const OpInfo& op : all_ops()) {
    names += names.empty() ? "" : ", ";
    names += op.name;
  }
  return names;
}

// Calls visit(item) for the comma-separated items until one is not PAVO_OK.
template <typename Visit>
int32_t for_each_item(std::string_view list, Visit&& visit) {
  while (!list.empty()) {
    const size_t comma = std::min(list.find(','), list.size());
    const int32_t code = visit(list.substr(0, comma));
    if (code != PAVO_OK) {
      return code;
    }
    list.remove_prefix(std::min(comma + 1, list.size()));
  }
  return PAVO_OK;
}

int32_t fail_text(pavo_error* error, const std::string& text) {
  return sdk::fail(error, PAVO_ERROR_INVALID_ARGUMENT, "%s", text.c_str());
}

int32_t parse_op(
    std::string_view key, std::string_view name, const OpInfo** op, pavo_error* error) {
  *op = find_op(name);
  return *op != nullptr ? PAVO_OK
                        : fail_text(
                              error,
                              "option " + std::string(key) + ": no op is named '" +
                                  std::string(name) + "'; ops are " + op_names());
}

int32_t parse_refuse(std::string_view list, Options* out, pavo_error* error) {
  return for_each_item(list, [&](std::string_view item) {
    const OpInfo* op = nullptr;
    const int32_t code = parse_op("refuse", item, &op, error);
    if (code == PAVO_OK) {
      out->refused.push_back(op->op);
    }
    return code;
  });
}

int32_t parse_forced(std::string_view list, Options* out, pavo_error* error) {
  return for_each_item(list, [&](std::string_view item) {
    const size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return fail_text(
          error, "option force_variant: expected op=kernel, got '" + std::string(item) + "'");
    }
    const OpInfo* op = nullptr;
    const int32_t code = parse_op("force_variant", item.substr(0, equals), &op, error);
    if (code != PAVO_OK) {
      return code;
    }
    const std::string name(item.substr(equals + 1));
    if (find_kernel(op->op, name) == nullptr) {
      return fail_text(
          error,
          "option force_variant: " + std::string(op->name) + " has no kernel '" + name +
              "'; it has " + kernel_names(op->op, ", "));
    }
    out->forced.emplace_back(op->op, name);
    return static_cast<int32_t>(PAVO_OK);
  });
}

int32_t parse_simd(std::string_view name, Options* out, pavo_error* error) {
  if (!name.empty() && !has_simd_target(name)) {
    return fail_text(
        error,
        "option simd: this machine has no '" + std::string(name) + "'; it has " +
            simd_target_names());
  }
  out->simd = name;
  return PAVO_OK;
}

int32_t parse_int(const pavo_value& value, int64_t most, int64_t* out, pavo_error* error) {
  if (value.int_value < 0 || value.int_value > most) {
    return fail_text(
        error,
        "option " + std::string(sdk::view(value.key)) + ": expected 0.." + std::to_string(most) +
            ", got " + std::to_string(value.int_value));
  }
  *out = value.int_value;
  return PAVO_OK;
}

int32_t parse_option(const pavo_value& value, Options* out, pavo_error* error) {
  const std::string_view key = sdk::view(value.key);
  const auto found =
      std::find_if(infos().begin(), infos().end(), [&](const pavo_option_info* info) {
        return sdk::view(info->key) == key;
      });
  if (found == infos().end()) {
    return fail_text(
        error, "the CPU plugin has no option '" + std::string(key) + "'; it has " + valid_keys());
  }
  const pavo_option_info* info = *found;
  if (value.type != info->type) {
    return fail_text(
        error,
        "option " + std::string(key) + ": expected " + type_name(info->type) + ", got " +
            type_name(value.type));
  }
  if (key == kForceVariantKey) {
    return parse_forced(sdk::view(value.string_value), out, error);
  }
  if (key == kSimdKey) {
    return parse_simd(sdk::view(value.string_value), out, error);
  }
  if (info == &kRefuse) {
    return parse_refuse(sdk::view(value.string_value), out, error);
  }
  int64_t number = 0;
  const int32_t code = parse_int(value, info == &kThreads ? kMaxThreads : 1, &number, error);
  if (code == PAVO_OK && info == &kThreads) {
    out->threads = static_cast<int32_t>(number);
  } else if (code == PAVO_OK) {
    out->reference = number != 0;
  }
  return code;
}

}  // namespace

const pavo_option_info* const* option_infos(uint32_t* count) {
  *count = static_cast<uint32_t>(infos().size());
  return infos().data();
}

int32_t parse_options(const pavo_values* values, Options* out, pavo_error* error) {
  Options options;
  options.threads = 0;
  pavo_values list{};
  if (values != nullptr) {
    const int32_t code = sdk::read_struct(values, &list, sizeof(pavo_values), "pavo_values", error);
    if (code != PAVO_OK) {
      return code;
    }
  }
  for (uint32_t i = 0; i < list.count; ++i) {
    pavo_value value;
    int32_t code = sdk::read_struct(list.items[i], &value, sizeof(pavo_value), "pavo_value", error);
    if (code == PAVO_OK) {
      code = parse_option(value, &options, error);
    }
    if (code != PAVO_OK) {
      return code;
    }
  }
  if (options.threads == 0) {
    options.threads = available_cores();
  }
  *out = std::move(options);
  return PAVO_OK;
}

}  // namespace pavo::cpu
