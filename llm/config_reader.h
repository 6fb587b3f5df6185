// Reads hyperparameters by key with ranges, from GGUF metadata or from a config.json alike. The
// first problem is kept and named; later reads return their fallback, so that a family can read all
// of its keys in a row and ask once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include <nlohmann/json_fwd.hpp>

#include "core/status.h"

namespace pavo::llm {

class GgufFile;

// The source must outlive the reader. One thread at a time.
class ConfigReader {
 public:
  // Keys are prefix + name, as "llama." + "block_count".
  ConfigReader(const GgufFile& file, std::string prefix);
  // Keys are members of `object`; null counts as missing. `where` starts messages ("config.json").
  ConfigReader(const nlohmann::json& object, std::string where);

  bool has(const std::string& key) const;
  // A missing key gives the fallback; without one it is an error.
  int64_t integer(
      const std::string& key,
      int64_t min,
      int64_t max,
      std::optional<int64_t> fallback = std::nullopt);
  // Finite; integers are accepted too.
  double number(
      const std::string& key,
      double min,
      double max,
      std::optional<double> fallback = std::nullopt);
  bool flag(const std::string& key, bool fallback);
  std::string text(const std::string& key, const std::string& fallback);

  // Records a problem that the caller found: "<where>: <key>: <problem>".
  void fail(const std::string& key, const std::string& problem, Code code = Code::kInvalidFile);
  // Takes over the problem of a reader of a nested object.
  void adopt(const Status& status) {
    if (status_.ok()) {
      status_ = status;
    }
  }
  const Status& status() const { return status_; }

 private:
  // Present but of no scalar type: its description.
  struct Other {
    std::string description;
  };
  using Value = std::variant<std::monostate, bool, int64_t, double, std::string, Other>;

  static Value gguf_value(const GgufFile& file, const std::string& key);
  static Value json_value(const nlohmann::json& object, const std::string& key);
  static std::string describe(const Value& value);
  void fail_type(const std::string& key, const std::string& expected, const Value& found);

  std::function<Value(const std::string&)> lookup_;
  std::string where_;
  std::string prefix_;
  Status status_;
};

}  // namespace pavo::llm
