// kv_store: pool row slots[t] = x[t], cast to the pool's type with the rounding of quant.h.
#include "plugins/cpu/kv_quantize.h"
#include "plugins/cpu/reference/reference.h"

namespace pavo::cpu {
namespace {

using namespace reference;

struct KvStoreReference {
  static constexpr const char* kName = kReferenceName;
  static constexpr int32_t kOp = pavo_op_kv_store;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    if (!check.present(0) || !check.present(1) || !check.present(2) || !check.rank(0, 3) ||
        !check.activations({0}) || !check.kv_pool(1) || !check.rank(2, 1) || !check.indices({2})) {
      return false;
    }
    if (query.node.outputs[0] != query.node.inputs[1]) {
      return sdk::refuse(
          verdict,
          PAVO_REASON_OPERAND,
          3,
          -1,
          query.node.inputs[1],
          query.node.outputs[0],
          "expected the output to be the pool, tensor %u, got %u",
          query.node.inputs[1],
          query.node.outputs[0]);
    }
    const pavo_tensor& x = *query.input(0);
    return check.dim(1, 1, x.shape[1], "G of x") && check.dim(1, 3, x.shape[2], "D of x") &&
           check.dim(2, 0, x.shape[0], "T of x");
  }

  static int64_t workspace_bytes(const NodeQuery& /*query*/) { return 0; }

  static Cost cost(const NodeQuery& query) {
    return {2 * values(*query.input(0)) * 4, values(*query.input(0))};
  }

  static int32_t launch(const KernelArgs& args, pavo_error* error) {
    const Operand x = args.input(0);
    const Operand pool = args.input(1);
    const Operand slots = args.input(2);
    const int64_t heads = x.dim(1);
    const int32_t code = check_slots(slots, x.dim(0), pool.dim(0), error);
    if (code != PAVO_OK) {
      return code;
    }
    pavo_kv_layout layout{};
    pavo_kv_layout_init(pool.tensor->type, x.dim(2), &layout);
    for (int64_t r = 0; r < x.dim(0) * heads; ++r) {
      const int64_t slot = index_at(slots, 0, r / heads);
      if (slot >= 0) {
        const int64_t head = slot / PAVO_KV_PAGE_ROWS * heads + r % heads;
        quantize_kv_row(
            pool.tensor->type,
            layout,
            row(x, r),
            x.dim(2),
            pool.data + head * layout.head_bytes,
            slot % PAVO_KV_PAGE_ROWS);
      }
    }
    return PAVO_OK;
  }
};

}  // namespace

const Reference& kv_store_reference() {
  static constexpr Reference kReference = reference_entry<KvStoreReference>();
  return kReference;
}

}  // namespace pavo::cpu
