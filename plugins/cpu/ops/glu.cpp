// glu: every activation but erf's through one sigmoid.
#include <cstddef>
#include <cstdint>

#include "plugins/cpu/kernel.h"
#include "plugins/cpu/ops/row_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/ops/glu.cpp"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include <hwy/contrib/math/math-inl.h>

#include "plugins/cpu/ops/elementwise-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

// x / (1 + e^-z)
template <class D, class V>
HWY_INLINE V times_sigmoid(D d, V x, V z) {
  // Beyond this e^-z leaves f32, and the result lies below every normal f32.
  const auto largest = hn::Set(d, 88.0F);
  return hn::Div(x, hn::Add(hn::Set(d, 1.0F), hn::Exp(d, hn::Min(hn::Neg(z), largest))));
}

template <class D, class V>
HWY_INLINE V activate(D d, const pavo_glu_params& params, V gate, V up) {
  if (params.kind == PAVO_GLU_SILU) {
    return hn::Mul(times_sigmoid(d, gate, gate), up);
  }
  if (params.kind == PAVO_GLU_GELU_TANH) {
    // (1 + tanh(z)) / 2 is the sigmoid of 2 z; 1.595769 = 2 sqrt(2 / pi).
    const auto cubic = hn::Mul(hn::Set(d, 0.044715F), hn::Mul(gate, gate));
    const auto inner = hn::MulAdd(cubic, gate, gate);
    return hn::Mul(times_sigmoid(d, gate, hn::Mul(hn::Set(d, 1.5957691216057308F), inner)), up);
  }
  const auto limit = hn::Set(d, params.limit);
  const auto low = hn::Min(gate, limit);
  const auto clamped = hn::Max(hn::Neg(limit), hn::Min(up, limit));
  return hn::Mul(
      times_sigmoid(d, low, hn::Mul(hn::Set(d, params.alpha), low)),
      hn::Add(clamped, hn::Set(d, 1.0F)));
}

void glu_piece(
    const pavo_glu_params& params, const float* gate, const float* up, float* out, int64_t count) {
  for_each_vector(count, [&](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(activate(d, params, hn::LoadU(d, gate + i), hn::LoadU(d, up + i)), d, out + i);
  });
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pavo::cpu {
namespace {

HWY_EXPORT(glu_piece);

struct GluSigmoid {
  static constexpr const char* kName = "glu_sigmoid";
  static constexpr int32_t kOp = pavo_op_glu;
  static constexpr int32_t kDecision = PAVO_ACCEPT;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    const int32_t kind = query.params<pavo_glu_params>().kind;
    return kind != PAVO_GLU_GELU_ERF || sdk::refuse(
                                            verdict,
                                            PAVO_REASON_PARAM,
                                            -1,
                                            offsetof(pavo_glu_params, kind),
                                            PAVO_GLU_SILU,
                                            kind,
                                            "the error function has no fast form here");
  }

  static int64_t workspace_bytes(const NodeQuery& /*query*/) { return 0; }

  static int32_t launch(const KernelArgs& args, pavo_error* /*error*/) {
    const Operand gate = args.input(0);
    const Operand up = args.input(1);
    const Operand out = args.output(0);
    const auto& params = args.params<pavo_glu_params>();
    const int64_t length = row_length(*out.tensor);
    const auto kernel = HWY_DYNAMIC_DISPATCH(glu_piece);
    for_each_piece(
        args.pool, row_count(*out.tensor), length, [&](int64_t r, int64_t begin, int64_t end) {
          const float* gates = row_of(gate, r);
          const float* ups = up ? row_of(up, r) : gates + length;
          kernel(params, gates + begin, ups + begin, row_of(out, r) + begin, end - begin);
        });
    return PAVO_OK;
  }
};

}  // namespace

std::span<const Kernel> glu_kernels() {
  static constexpr Kernel kKernels[] = {entry<GluSigmoid>()};
  return kKernels;
}

}  // namespace pavo::cpu
#endif  // HWY_ONCE
