// binary: f32 operands, b broadcast row by row.
#include <cstdint>

#include "plugins/cpu/checker.h"
#include "plugins/cpu/kernel.h"
#include "plugins/cpu/ops/row_parts.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "plugins/cpu/ops/binary.cpp"
#include <hwy/foreach_target.h>
// clang-format off: after foreach_target.h
#include "plugins/cpu/ops/elementwise-inl.h"
// clang-format on

HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

template <class V>
HWY_INLINE V combine(int32_t kind, V a, V b) {
  if (kind == PAVO_BINARY_ADD) {
    return hn::Add(a, b);
  }
  return kind == PAVO_BINARY_SUB ? hn::Sub(a, b) : hn::Mul(a, b);
}

// b_values: 1 if one value of b stands for the whole row, else as many as a has.
void binary_piece(
    int32_t kind, const float* a, const float* b, int64_t b_values, float* out, int64_t count) {
  for_each_vector(count, [&](auto d, int64_t i) HWY_ATTR {
    const auto right = b_values == 1 ? hn::Set(d, *b) : hn::LoadU(d, b + i);
    hn::StoreU(combine(kind, hn::LoadU(d, a + i), right), d, out + i);
  });
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pavo::cpu {
namespace {

HWY_EXPORT(binary_piece);

struct BinaryRows {
  static constexpr const char* kName = "binary_rows";
  static constexpr int32_t kOp = pavo_op_binary;
  static constexpr int32_t kDecision = PAVO_ACCEPT;

  // A weight may lie at an odd address of a mapped file, where floats cannot be read in place.
  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    return Checker(query, verdict).activations({1});
  }

  static int64_t workspace_bytes(const NodeQuery& /*query*/) { return 0; }

  static int32_t launch(const KernelArgs& args, pavo_error* /*error*/) {
    const Operand a = args.input(0);
    const Operand b = args.input(1);
    const Operand out = args.output(0);
    const int32_t kind = args.params<pavo_binary_params>().kind;
    const int64_t length = row_length(*a.tensor);
    const int64_t b_values = row_length(*b.tensor);
    const auto kernel = HWY_DYNAMIC_DISPATCH(binary_piece);
    for_each_piece(
        args.pool, row_count(*a.tensor), length, [&](int64_t r, int64_t begin, int64_t end) {
          const float* right = row_of(b, broadcast_row(*a.tensor, *b.tensor, r));
          right += b_values == 1 ? 0 : begin;
          kernel(kind, row_of(a, r) + begin, right, b_values, row_of(out, r) + begin, end - begin);
        });
    return PAVO_OK;
  }
};

}  // namespace

std::span<const Kernel> binary_kernels() {
  static constexpr Kernel kKernels[] = {entry<BinaryRows>()};
  return kKernels;
}

}  // namespace pavo::cpu
#endif  // HWY_ONCE
