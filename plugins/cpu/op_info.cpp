#include "plugins/cpu/op_info.h"

#include "pavo/plugin.h"

namespace pavo::cpu {
namespace {

constexpr OpInfo kOps[] = {
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  {#name, id, in_min, in_max, out_min, out_max, sizeof(pavo_##name##_params)},
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
};

}  // namespace

std::span<const OpInfo> all_ops() {
  return kOps;
}

const OpInfo* find_op(int32_t op) {
  for (const OpInfo& info : kOps) {
    if (info.op == op) {
      return &info;
    }
  }
  return nullptr;
}

const OpInfo* find_op(std::string_view name) {
  for (const OpInfo& info : kOps) {
    if (info.name == name) {
      return &info;
    }
  }
  return nullptr;
}

}  // namespace pavo::cpu
