#include "tests/ops/op_test.h"
#include "tests/ops/rope_case.h"

namespace pavo::test {
namespace {

class RopeTest : public OpTest {
 protected:
  static pavo_rope_params params(int32_t mode, int32_t rotary_dims) {
    return rope_params(mode, rotary_dims);
  }

  template <typename... Rest>
  OpCase make(const Shape& shape, const pavo_rope_params& params, Rest... rest) {
    return make_rope(random_, shape, params, rest...);
  }

  void check(const OpCase& test_case) { expect_close(test_case, {expect_rope(test_case)}); }
};

TEST_P(RopeTest, NormalAndNeox) {
  for (const int32_t mode : {PAVO_ROPE_NORMAL, PAVO_ROPE_NEOX}) {
    for (const int32_t dims : {2, 6, 8, 30, 32, 64, 66, 128}) {
      SCOPED_TRACE("mode " + std::to_string(mode) + ", head " + std::to_string(dims));
      check(make({1, 3, dims}, params(mode, dims)));
      check(make({6, 2, dims}, params(mode, dims), 37));
    }
  }
}

TEST_P(RopeTest, CopiesWhatIsNotRotated) {
  for (const int32_t mode : {PAVO_ROPE_NORMAL, PAVO_ROPE_NEOX}) {
    check(make({5, 2, 80}, params(mode, 32), 11));
    check(make({2, 2, 67}, params(mode, 2), 11));
  }
}

TEST_P(RopeTest, FarPositionsKeepTheirAngle) {
  check(make({50, 1, 64}, params(PAVO_ROPE_NEOX, 64), 3989));
  pavo_rope_params far = params(PAVO_ROPE_NORMAL, 128);
  far.theta = 1e6F;
  check(make({50, 1, 128}, far, 3989));
}

TEST_P(RopeTest, ScalesFactorsAndYarn) {
  pavo_rope_params p = params(PAVO_ROPE_NEOX, 64);
  p.freq_scale = 0.25F;
  check(make({4, 2, 64}, p, 501, true));
  p.ext_factor = 1.0F;
  p.beta_fast = 32.0F;
  p.beta_slow = 1.0F;
  p.original_context = 4096;
  p.magnitude = 1.1386F;
  check(make({4, 2, 64}, p, 501));
  check(make({4, 2, 64}, p, 501, true));
  p.mode = PAVO_ROPE_NORMAL;
  check(make({40, 3, 64}, p, 501));
}

TEST_P(RopeTest, Sections) {
  pavo_rope_params p = params(PAVO_ROPE_SECTIONS, 48);
  p.section_0 = 8;
  p.section_1 = 12;
  p.section_2 = 4;
  check(make({5, 2, 64}, p, 7));
  p.section_0 = 0;
  p.section_3 = 8;
  check(make({5, 2, 64}, p, 7));
}

TEST_P(RopeTest, ManyTokensAndStrides) {
  check(make({150, 4, 64}, params(PAVO_ROPE_NEOX, 64)));
  check(make({9, 2, 32}, params(PAVO_ROPE_NORMAL, 32), 5, false, 24));
}

TEST_P(RopeTest, RefusesWhatDoesNotFit) {
  expect_refusal(make({2, 2, 16}, params(PAVO_ROPE_NEOX, 18)), PAVO_REASON_PARAM, -1);
  expect_refusal(make({2, 2, 16}, params(PAVO_ROPE_NEOX, 7)), PAVO_REASON_PARAM, -1);
  expect_refusal(make({2, 2, 16}, params(PAVO_ROPE_NEOX, 0)), PAVO_REASON_PARAM, -1);
  expect_refusal(make({2, 2, 16}, params(9, 16)), PAVO_REASON_PARAM, -1);
  pavo_rope_params p = params(PAVO_ROPE_NEOX, 16);
  p.theta = 0;
  expect_refusal(make({2, 2, 16}, p), PAVO_REASON_PARAM, -1);
  p = params(PAVO_ROPE_SECTIONS, 16);
  p.section_0 = 7;
  expect_refusal(make({2, 2, 16}, p), PAVO_REASON_PARAM, -1);
  OpCase test_case = make({2, 2, 16}, params(PAVO_ROPE_NEOX, 16));
  test_case.tensors[1] = step({3}, {0, 1, 2});
  expect_refusal(test_case, PAVO_REASON_SHAPE_MISMATCH, 1);
}

PAVO_INSTANTIATE_OP_TEST(RopeTest);

}  // namespace
}  // namespace pavo::test
