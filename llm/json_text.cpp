#include "llm/json_text.h"

#include <unordered_set>

#include <nlohmann/json.hpp>

#include "llm/message.h"

namespace pavo::llm {

using nlohmann::json;

Status parse_json_object(std::span<const std::byte> text, const std::string& what, json* out) {
  std::unordered_set<std::string> keys;
  std::string duplicate;
  const auto note_key = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth == 1 && event == json::parse_event_t::key && parsed.is_string()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.insert(key).second) {
        duplicate = key;
      }
    }
    return true;
  };
  const auto* begin = reinterpret_cast<const char*>(text.data());
  *out = json::parse(begin, begin + text.size(), note_key, /*allow_exceptions=*/false);
  if (out->is_discarded()) {
    return {Code::kInvalidFile, what + ": expected JSON, found text that does not parse as JSON"};
  }
  if (!out->is_object()) {
    return {Code::kInvalidFile, concat(what, ": expected a JSON object, found ", out->type_name())};
  }
  if (!duplicate.empty()) {
    return {Code::kInvalidFile, concat(what, ": key ", quote(duplicate), " is there twice")};
  }
  return {};
}

}  // namespace pavo::llm
