#include "llm/json_text.h"

#include <optional>
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

// Looks at text without keeping what it says. The parser's own callbacks would do, but they search
// the whole parent after each value: hours for a header of many tensors.
class Inspector final : public nlohmann::json_sax<json> {
 public:
  bool too_deep() const { return depth_ > kMaxDepth; }
  // A key that the outermost object has twice, or nothing.
  const std::optional<std::string>& duplicate() const { return duplicate_; }

  bool null() override { return true; }
  bool boolean(bool /*value*/) override { return true; }
  bool number_integer(int64_t /*value*/) override { return true; }
  bool number_unsigned(uint64_t /*value*/) override { return true; }
  bool number_float(double /*value*/, const std::string& /*text*/) override { return true; }
  bool string(std::string& /*value*/) override { return true; }
  bool binary(json::binary_t& /*value*/) override { return true; }
  bool start_object(size_t /*size*/) override { return enter(); }
  bool start_array(size_t /*size*/) override { return enter(); }
  bool end_object() override { return leave(); }
  bool end_array() override { return leave(); }

  bool key(std::string& name) override {
    if (depth_ == 1 && !keys_.insert(name).second) {
      duplicate_ = name;
    }
    return true;
  }

  bool parse_error(
      size_t /*position*/, const std::string& /*token*/, const json::exception& /*e*/) override {
    return false;
  }

 private:
  bool enter() { return ++depth_ <= kMaxDepth; }

  bool leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::unordered_set<std::string> keys_;
  std::optional<std::string> duplicate_;
};

}  // namespace

Status parse_json_object(std::span<const std::byte> text, const std::string& what, json* out) {
  if (text.size() > kMaxBytes) {
    return {
        Code::kInvalidFile,
        concat(what, ": expected at most ", kMaxBytes, " bytes of JSON, found ", text.size())};
  }
  const auto* begin = reinterpret_cast<const char*>(text.data());
  const auto* end = begin + text.size();
  Inspector inspector;
  const bool is_json = json::sax_parse(begin, end, &inspector);
  if (inspector.too_deep()) {
    return {
        Code::kInvalidFile,
        concat(what, ": expected JSON nested up to ", kMaxDepth, " levels, found more")};
  }
  if (!is_json) {
    return {Code::kInvalidFile, what + ": expected JSON, found text that does not parse as JSON"};
  }
  *out = json::parse(begin, end, nullptr, /*allow_exceptions=*/false);
  if (!out->is_object()) {
    return {Code::kInvalidFile, concat(what, ": expected a JSON object, found ", out->type_name())};
  }
  if (inspector.duplicate()) {
    return {
        Code::kInvalidFile,
        concat(what, ": key ", quote(*inspector.duplicate()), " is there twice")};
  }
  return {};
}

}  // namespace pavo::llm
