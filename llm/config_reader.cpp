#include "llm/config_reader.h"

#include <utility>

#include <nlohmann/json.hpp>

#include "llm/gguf.h"
#include "llm/message.h"

namespace pavo::llm {

using nlohmann::json;

ConfigReader::ConfigReader(const GgufFile& file, std::string prefix)
    : lookup_([&file](const std::string& key) { return gguf_value(file, key); }),
      where_("gguf"),
      prefix_(std::move(prefix)) {}

ConfigReader::ConfigReader(const json& object, std::string where)
    : lookup_([&object](const std::string& key) { return json_value(object, key); }),
      where_(std::move(where)) {}

ConfigReader::Value ConfigReader::gguf_value(const GgufFile& file, const std::string& key) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) {
    return std::monostate();
  }
  if (const auto flag = file.get<bool>(key); flag.ok()) {
    return *flag;
  }
  if (const auto integer = file.get<int64_t>(key); integer.ok()) {
    return *integer;
  }
  if (const auto number = file.get<double>(key); number.ok()) {
    return *number;
  }
  if (const auto text = file.get<std::string_view>(key); text.ok()) {
    return std::string(*text);
  }
  return Other{llm::describe(*value)};
}

ConfigReader::Value ConfigReader::json_value(const json& object, const std::string& key) {
  const auto found = object.find(key);
  if (found == object.end() || found->is_null()) {
    return std::monostate();
  }
  if (found->is_boolean()) {
    return found->get<bool>();
  }
  if (found->is_number_unsigned() && found->get<uint64_t>() > uint64_t{INT64_MAX}) {
    return found->get<double>();
  }
  if (found->is_number_integer()) {
    return found->get<int64_t>();
  }
  if (found->is_number_float()) {
    return found->get<double>();
  }
  if (found->is_string()) {
    return found->get<std::string>();
  }
  return Other{found->type_name()};
}

std::string ConfigReader::describe(const Value& value) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "no such key"; }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(int64_t integer) const { return std::to_string(integer); }
    std::string operator()(double number) const { return concat(number); }
    std::string operator()(const std::string& text) const { return quote(text); }
    std::string operator()(const Other& other) const { return other.description; }
  };
  return std::visit(Visitor(), value);
}

void ConfigReader::fail(const std::string& key, const std::string& problem, Code code) {
  if (status_.ok()) {
    status_ = Status(code, concat(where_, ": ", prefix_, key, ": ", problem));
  }
}

void ConfigReader::fail_type(
    const std::string& key, const std::string& expected, const Value& found) {
  fail(key, concat("expected ", expected, ", found ", describe(found)));
}

bool ConfigReader::has(const std::string& key) const {
  return !std::holds_alternative<std::monostate>(lookup_(prefix_ + key));
}

int64_t ConfigReader::integer(
    const std::string& key, int64_t min, int64_t max, std::optional<int64_t> fallback) {
  const Value value = lookup_(prefix_ + key);
  if (fallback && std::holds_alternative<std::monostate>(value)) {
    return *fallback;
  }
  const auto* found = std::get_if<int64_t>(&value);
  if (found == nullptr || *found < min || *found > max) {
    fail_type(key, concat("an integer from ", min, " to ", max), value);
    return fallback.value_or(min);
  }
  return *found;
}

double ConfigReader::number(
    const std::string& key, double min, double max, std::optional<double> fallback) {
  const Value value = lookup_(prefix_ + key);
  if (fallback && std::holds_alternative<std::monostate>(value)) {
    return *fallback;
  }
  const auto* integer = std::get_if<int64_t>(&value);
  const auto* real = std::get_if<double>(&value);
  const double found =
      integer != nullptr ? static_cast<double>(*integer) : (real != nullptr ? *real : min);
  const bool is_number = integer != nullptr || real != nullptr;
  if (!is_number || !(found >= min && found <= max)) {  // so written, NaN is refused
    fail_type(key, concat("a number from ", min, " to ", max), value);
    return fallback.value_or(min);
  }
  return found;
}

bool ConfigReader::flag(const std::string& key, bool fallback) {
  const Value value = lookup_(prefix_ + key);
  if (std::holds_alternative<std::monostate>(value)) {
    return fallback;
  }
  const auto* found = std::get_if<bool>(&value);
  if (found == nullptr) {
    fail_type(key, "true or false", value);
    return fallback;
  }
  return *found;
}

std::string ConfigReader::text(const std::string& key, const std::string& fallback) {
  const Value value = lookup_(prefix_ + key);
  if (std::holds_alternative<std::monostate>(value)) {
    return fallback;
  }
  const auto* found = std::get_if<std::string>(&value);
  if (found == nullptr) {
    fail_type(key, "a string", value);
    return fallback;
  }
  return *found;
}

}  // namespace pavo::llm
