// norm over rows: one pass that adds the residual and sums, one that scales.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "plugins/cpu/dequantize.h"
#include "plugins/cpu/kernel.h"
#include "plugins/cpu/ops/norm_row.h"
#include "plugins/cpu/ops/row_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/ops/norm.cpp"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "plugins/cpu/ops/elementwise-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

// Returns where s can be read: x itself, or the output into which x (+ residual) was written.
HWY_INLINE const float* add_residual(const NormRow& row) {
  if (row.residual == nullptr && row.sum == nullptr) {
    return row.x;
  }
  float* target = row.sum != nullptr ? row.sum : row.y;
  for_each_vector(row.length, [&](auto d, int64_t i) HWY_ATTR {
    const auto x = hn::LoadU(d, row.x + i);
    const auto s = row.residual != nullptr ? hn::Add(x, hn::LoadU(d, row.residual + i)) : x;
    hn::StoreU(s, d, target + i);
  });
  return target;
}

HWY_INLINE float mean_of(const float* s, int64_t length) {
  const float total =
      sum_over(length, [&](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, s + i); });
  return total / static_cast<float>(length);
}

HWY_INLINE float squares_of(const float* s, float mean, int64_t length) {
  return sum_over(length, [&](auto d, int64_t i) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, s + i), hn::Set(d, mean));
    return hn::Mul(centred, centred);
  });
}

HWY_INLINE float factor_of(const pavo_norm_params& params, float squares, int64_t length) {
  if (params.kind == PAVO_NORM_L2) {
    return 1.0F / std::max(std::sqrt(squares), params.eps);
  }
  return 1.0F / std::sqrt(squares / static_cast<float>(length) + params.eps);
}

void norm_row(const pavo_norm_params& params, const NormRow& row) {
  const float* s = add_residual(row);
  const float mean = params.kind == PAVO_NORM_LAYER ? mean_of(s, row.length) : 0.0F;
  const float factor = factor_of(params, squares_of(s, mean, row.length), row.length);
  for_each_vector(row.length, [&](auto d, int64_t i) HWY_ATTR {
    const auto centred = hn::Sub(hn::LoadU(d, s + i), hn::Set(d, mean));
    const auto weight = row.weight != nullptr ? hn::LoadU(d, row.weight + i) : hn::Set(d, 1.0F);
    auto y = hn::Mul(
        hn::Mul(centred, hn::Set(d, factor)), hn::Add(weight, hn::Set(d, params.weight_offset)));
    if (row.bias != nullptr) {
      y = hn::Add(y, hn::LoadU(d, row.bias + i));
    }
    hn::StoreU(y, d, row.y + i);
  });
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pavo::cpu {
namespace {

HWY_EXPORT(norm_row);

struct NormRows {
  static constexpr const char* kName = "norm_rows";
  static constexpr int32_t kOp = pavo_op_norm;
  static constexpr int32_t kDecision = PAVO_ACCEPT;

  // Whatever the reference takes.
  static bool supports(const NodeQuery& /*query*/, pavo_verdict* /*verdict*/) { return true; }

  // Weight and bias as f32 at an aligned address.
  static int64_t workspace_bytes(const NodeQuery& query) {
    return 2 * row_length(*query.input(0)) * static_cast<int64_t>(sizeof(float));
  }

  static const float* dense(const Operand& weight, float* scratch) {
    if (!weight) {
      return nullptr;
    }
    const bool aligned = reinterpret_cast<uintptr_t>(weight.data) % alignof(float) == 0;
    if (weight.tensor->type == PAVO_TYPE_F32 && aligned) {
      return weight.as<const float>();
    }
    dequantize_row(weight.tensor->type, weight.data, weight.dim(0), scratch);
    return scratch;
  }

  static int32_t launch(const KernelArgs& args, pavo_error* /*error*/) {
    const Operand x = args.input(0);
    const Operand residual = args.input(3);
    const Operand y = args.output(0);
    const Operand sum = args.output(1);
    const int64_t length = row_length(*x.tensor);
    auto* scratch = reinterpret_cast<float*>(args.workspace);
    const float* weight = dense(args.input(1), scratch);
    const float* bias = dense(args.input(2), scratch + length);
    const auto& params = args.params<pavo_norm_params>();
    const auto kernel = HWY_DYNAMIC_DISPATCH(norm_row);
    const int64_t grain = row_grain(length);
    args.pool.parallel_for(row_count(*x.tensor), grain, [&](int64_t begin, int64_t end, int32_t) {
      for (int64_t r = begin; r < end; ++r) {
        const NormRow row = {
            row_of(x, r), row_of(residual, r), weight, bias, row_of(y, r), row_of(sum, r), length};
        kernel(params, row);
      }
    });
    return PAVO_OK;
  }
};

}  // namespace

std::span<const Kernel> norm_kernels() {
  static constexpr Kernel kKernels[] = {entry<NormRows>()};
  return kKernels;
}

}  // namespace pavo::cpu
#endif  // HWY_ONCE
