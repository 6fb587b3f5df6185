#include "llm/json_text.h"

#include <string>
#include <unordered_set>

#include <nlohmann/json.hpp>

#include "llm/message.h"

namespace pavo::llm {

using nlohmann::json;

namespace {

// Parsed JSON takes up to twenty times its text, so hostile text is limited before it is parsed.
// The largest published index of a checkpoint has 10 MB and nothing nests deeper than 8.
constexpr size_t kMaxBytes = 32 << 20;
constexpr int kMaxDepth = 32;

}  // namespace

Status parse_json_object(std::span<const std::byte> text, const std::string& what, json* out) {
  if (text.size() > kMaxBytes) {
    return {
        Code::kInvalidFile,
        concat(what, ": expected at most ", kMaxBytes, " bytes of JSON, found ", text.size())};
  }
  bool too_deep = false;
  std::unordered_set<std::string> keys;
  std::string duplicate;
  const auto look = [&](int depth, json::parse_event_t event, json& parsed) {
    if (depth > kMaxDepth) {
      too_deep = true;
      return false;  // drops what is nested there
    }
    if (depth == 1 && event == json::parse_event_t::key && parsed.is_string()) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.insert(key).second) {
        duplicate = key;
      }
    }
    return true;
  };
  const auto* begin = reinterpret_cast<const char*>(text.data());
  *out = json::parse(begin, begin + text.size(), look, /*allow_exceptions=*/false);
  if (too_deep) {
    return {
        Code::kInvalidFile,
        concat(what, ": expected JSON nested up to ", kMaxDepth, " levels, found more")};
  }
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
