// rope: rotates pairs of each head by position * freq_i.
#include <cmath>

#include "plugins/cpu/reference/reference.h"
#include "plugins/cpu/rope_frequencies.h"

namespace pavo::cpu {
namespace {

using namespace reference;

struct RopeReference {
  static constexpr const char* kName = kReferenceName;
  static constexpr int32_t kOp = pavo_op_rope;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    Checker check(query, verdict);
    const uint32_t out = check.output(0);
    const auto& params = query.params<pavo_rope_params>();
    if (!check.present(0) || !check.present(1) || !check.rank(0, 3) || !check.rank(out, 3) ||
        !check.activations({0, out}) || !check.same_shape(out, 0) || !check.indices({1}) ||
        !check.param_range(
            offsetof(pavo_rope_params, mode),
            "mode",
            params.mode,
            PAVO_ROPE_NORMAL,
            PAVO_ROPE_SECTIONS)) {
      return false;
    }
    const bool sections = params.mode == PAVO_ROPE_SECTIONS;
    const pavo_tensor& x = *query.input(0);
    if (!check.rank(1, sections ? 2 : 1) || (sections && !check.dim(1, 0, 4, "position rows"))) {
      return false;
    }
    return check.dim(1, sections ? 1 : 0, x.shape[0], "T of x") &&
           check_rope_params(query, &check, verdict) &&
           check.dense_weight(2, params.rotary_dims / 2);
  }

  // Frequencies in double; after them the decoded factors.
  static int64_t workspace_bytes(const NodeQuery& query) {
    const int64_t pairs = query.params<pavo_rope_params>().rotary_dims / 2;
    return pairs * static_cast<int64_t>(sizeof(double) + sizeof(float));
  }

  static Cost cost(const NodeQuery& query) {
    return {operand_bytes(query), 4 * values(*query.input(0))};
  }

  static int32_t launch(const KernelArgs& args, pavo_error* /*error*/) {
    const Operand x = args.input(0);
    const Operand positions = args.input(1);
    const Operand out = args.output(0);
    const auto& params = args.params<pavo_rope_params>();
    const int64_t pairs = params.rotary_dims / 2;
    auto* frequencies = reinterpret_cast<double*>(args.workspace);
    const float* factors = dense(args.input(2), reinterpret_cast<float*>(frequencies + pairs));
    rope_frequencies(params, factors, frequencies);
    for (int64_t r = 0; r < row_count(*x.tensor); ++r) {
      const float* source = row(x, r);
      float* target = row(out, r);
      for (int64_t i = params.rotary_dims; i < x.dim(2); ++i) {
        target[i] = source[i];
      }
      for (int64_t i = 0; i < pairs; ++i) {
        const int64_t position = index_at(positions, rope_position_row(params, i), r / x.dim(1));
        const double angle = static_cast<double>(position) * frequencies[i];
        const double cosine = std::cos(angle) * static_cast<double>(params.magnitude);
        const double sine = std::sin(angle) * static_cast<double>(params.magnitude);
        const bool adjacent = params.mode == PAVO_ROPE_NORMAL;
        const int64_t first = adjacent ? 2 * i : i;
        const int64_t second = adjacent ? 2 * i + 1 : i + pairs;
        const auto a = static_cast<double>(source[first]);
        const auto b = static_cast<double>(source[second]);
        target[first] = static_cast<float>(a * cosine - b * sine);
        target[second] = static_cast<float>(a * sine + b * cosine);
      }
    }
    return PAVO_OK;
  }
};

}  // namespace

const Reference& rope_reference() {
  static constexpr Reference kReference = reference_entry<RopeReference>();
  return kReference;
}

}  // namespace pavo::cpu
