// embed: out[t,:] = table[ids[t],:].
#include <cstring>

#include "plugins/cpu/reference/reference.h"

namespace pavo::cpu {
namespace {

using namespace reference;

struct EmbedReference {
  static constexpr const char* kName = kReferenceName;
  static constexpr int32_t kOp = pavo_op_embed;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    const uint32_t out = check.output(0);
    if (!check.present(0) || !check.present(1) || !check.rank(0, 2) || !check.rank(1, 1) ||
        !check.rank(out, 2) || !check.role(0, {PAVO_ROLE_WEIGHT, PAVO_ROLE_ACTIVATION}) ||
        !check.indices({1}) || !check.activations({out})) {
      return false;
    }
    const pavo_tensor& table = *query.input(0);
    return check.dequantizable(0) && check.dim(out, 0, query.input(1)->shape[0], "T of ids") &&
           check.dim(out, 1, table.shape[1], "N of the table");
  }

  static int64_t workspace_bytes(const NodeQuery& /*query*/) { return 0; }

  static Cost cost(const NodeQuery& query) { return {2 * values(*query.output(0)) * 4, 0}; }

  static int32_t launch(const KernelArgs& args, pavo_error* /*error*/) {
    const Operand table = args.input(0);
    const Operand ids = args.input(1);
    const Operand out = args.output(0);
    const int64_t length = out.dim(1);
    for (int64_t t = 0; t < out.dim(0); ++t) {
      const int64_t id = index_at(ids, 0, t);
      if (id < 0 || id >= table.dim(0)) {
        std::memset(row(out, t), 0, static_cast<size_t>(length) * sizeof(float));
        continue;
      }
      dequantize_row(
          table.tensor->type, table.data + row_offset(*table.tensor, id), length, row(out, t));
    }
    return PAVO_OK;
  }
};

}  // namespace

const Reference& embed_reference() {
  static constexpr Reference kReference = reference_entry<EmbedReference>();
  return kReference;
}

}  // namespace pavo::cpu
