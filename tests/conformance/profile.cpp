#include "tests/conformance/profile.h"

#include <utility>
#include <vector>

#include <toml++/toml.h>

namespace pavo::conformance {

Result<std::unique_ptr<ValueList>> read_profile(const std::string& file) {
  std::vector<OptionValue> values;
  try {
    for (const auto& [key, value] : toml::parse_file(file)) {
      OptionValue out;
      out.key = std::string(key.str());
      if (const auto number = value.value_exact<int64_t>()) {
        out.type = PAVO_VALUE_INT;
        out.int_value = *number;
      } else if (const auto real = value.value_exact<double>()) {
        out.type = PAVO_VALUE_FLOAT;
        out.float_value = *real;
      } else if (const auto text = value.value_exact<std::string>()) {
        out.string_value = *text;
      } else {
        return Status(
            Code::kInvalidFile,
            file + ": expected a number or a text for " + out.key + ", found neither");
      }
      values.push_back(std::move(out));
    }
  } catch (const toml::parse_error& error) {
    return Status(Code::kInvalidFile, file + ": " + std::string(error.description()));
  }
  return std::make_unique<ValueList>(std::move(values));
}

}  // namespace pavo::conformance
