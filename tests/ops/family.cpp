#include "tests/ops/family.h"

namespace pavo::test {

std::function<Judge(const OpCase&)> judge_by(const Expectation& expectation) {
  return [expectation](const OpCase& test_case) -> Judge {
    return [&test_case, expected = expectation(test_case)](const OpRun& run) {
      std::vector<std::string> lines;
      for (size_t i = 0; i < expected.size(); ++i) {
        const uint32_t index = test_case.outputs[i];
        for (const std::string& line :
             compare_output(test_case.tensors[index], run.tensors[index], expected[i])) {
          lines.push_back("output " + std::to_string(i) + ", " + line);
        }
      }
      return lines;
    };
  };
}

Expectation one(Expected (*formula)(const OpCase&)) {
  return [formula](const OpCase& test_case) { return std::vector<Expected>{formula(test_case)}; };
}

std::string type_text(int32_t type) {
  return pavo_type_name(type);
}

#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  std::vector<Family> name##_families();  // of tests/ops/<name>_case.cpp
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD

std::vector<Family> families_of(int32_t op) {
  switch (op) {
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  case id:                                                          \
    return name##_families();
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
    default:
      return {};
  }
}

const std::vector<OpName>& all_ops() {
  static const std::vector<OpName> ops = {
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) {id, #name},
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
  };
  return ops;
}

std::string sizes_text(const Family& family, const Sizes& sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += std::string(i == 0 ? "" : " ") + family.axes[i].name + "=" + std::to_string(sizes[i]);
  }
  return text;
}

Sizes base_sizes(const Family& family) {
  Sizes sizes;
  for (const Axis& axis : family.axes) {
    sizes.push_back(axis.base);
  }
  return sizes;
}

}  // namespace pavo::test
