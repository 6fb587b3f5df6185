// Loops over f32 rows, compiled once per instruction set. Include it inside a file that
// foreach_target.h re-includes, outside of any namespace.
#if defined(PAVO_PLUGINS_CPU_OPS_ELEMENTWISE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef PAVO_PLUGINS_CPU_OPS_ELEMENTWISE_INL_H_
#undef PAVO_PLUGINS_CPU_OPS_ELEMENTWISE_INL_H_
#else
#define PAVO_PLUGINS_CPU_OPS_ELEMENTWISE_INL_H_
#endif

#include <cstdint>

#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pavo::cpu::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;
using OneFloatTag = hn::CappedTag<float, 1>;

// Calls step(tag, i) for i = 0, width, 2 * width ... with whole vectors, then one value at a time:
// nothing behind the row is touched. Lambdas carry HWY_ATTR.
template <class Step>
HWY_INLINE void for_each_vector(int64_t count, const Step& step) {
  const FloatTag d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  for (; i + width <= count; i += width) {
    step(d, i);
  }
  for (; i < count; ++i) {
    step(OneFloatTag(), i);
  }
}

// Sum over i of term(tag, i), in a fixed order: four accumulators, so that additions overlap and
// errors grow with a quarter of the vectors.
template <class Term>
HWY_INLINE float sum_over(int64_t count, const Term& term) {
  const FloatTag d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  auto sum0 = hn::Zero(d);
  auto sum1 = hn::Zero(d);
  auto sum2 = hn::Zero(d);
  auto sum3 = hn::Zero(d);
  int64_t i = 0;
  for (; i + 4 * width <= count; i += 4 * width) {
    sum0 = hn::Add(sum0, term(d, i));
    sum1 = hn::Add(sum1, term(d, i + width));
    sum2 = hn::Add(sum2, term(d, i + 2 * width));
    sum3 = hn::Add(sum3, term(d, i + 3 * width));
  }
  for (; i + width <= count; i += width) {
    sum0 = hn::Add(sum0, term(d, i));
  }
  sum0 = hn::Add(hn::Add(sum0, sum1), hn::Add(sum2, sum3));
  float total = hn::GetLane(hn::SumOfLanes(d, sum0));
  for (; i < count; ++i) {
    total += hn::GetLane(term(OneFloatTag(), i));
  }
  return total;
}

}  // namespace pavo::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // include guard
