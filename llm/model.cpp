#include "llm/model.h"

#include <array>
#include <string_view>

#include "llm/models/llama.h"

namespace pavo::llm {
namespace {

// One line a family: the architecture names of both file formats.
struct Family {
  std::string_view gguf;
  std::array<std::string_view, 2> hub;
  Result<std::unique_ptr<Model>> (*create)(const ModelSource& source);
};

constexpr std::array<Family, 1> kFamilies = {{
    {"llama", {"LlamaForCausalLM", "MistralForCausalLM"}, LlamaModel::create},
}};

}  // namespace

Result<std::unique_ptr<Model>> make_model(const ModelSource& source) {
  std::string known;
  for (const Family& family : kFamilies) {
    const std::string_view name = source.architecture();
    if (name == family.gguf || name == family.hub[0] || name == family.hub[1]) {
      return family.create(source);
    }
    for (const std::string_view other : {family.gguf, family.hub[0], family.hub[1]}) {
      known += (known.empty() ? "" : ", ") + std::string(other);
    }
  }
  return Status(
      Code::kInvalidFile,
      source.path() + ": architecture '" + source.architecture() +
          "' is not supported yet; supported: " + known);
}

}  // namespace pavo::llm
