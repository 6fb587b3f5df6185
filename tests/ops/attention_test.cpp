#include "tests/ops/attention_case.h"
#include "tests/ops/op_test.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

class AttentionTest : public OpTest {
 protected:
  void check(const AttentionForm& form) {
    const OpCase test_case = make_attention(random_, form);
    const bool wide = form.k_type == PAVO_TYPE_F32 && form.v_type == PAVO_TYPE_F32;
    const Arithmetic used = arithmetic(wide ? Arithmetic::kF32 : Arithmetic::kHalf);
    expect_close(test_case, {expect_attention(test_case, used)});
  }
};

TEST_P(AttentionTest, DecodeOfEveryTypePair) {
  for (const int32_t k_type : kKvTypes) {
    for (const int32_t v_type : kKvTypes) {
      SCOPED_TRACE(std::string(pavo_type_name(k_type)) + " and " + pavo_type_name(v_type));
      AttentionForm form;
      form.k_type = k_type;
      form.v_type = v_type;
      form.lengths = {131};
      check(form);
    }
  }
}

TEST_P(AttentionTest, LengthsAroundPages) {
  for (const int32_t type : kKvTypes) {
    for (const int32_t length : {1, 2, 31, 63, 64, 65, 127, 128, 129, 300}) {
      SCOPED_TRACE(std::string(pavo_type_name(type)) + ", " + std::to_string(length) + " rows");
      AttentionForm form;
      form.k_type = type;
      form.v_type = type;
      form.lengths = {length};
      form.spare_pages = length % 2;
      check(form);
    }
  }
}

TEST_P(AttentionTest, HeadSizes) {
  for (const int32_t type : kKvTypes) {
    for (const int64_t dim : {1, 8, 16, 24, 33, 64, 80, 96, 128, 192, 256}) {
      SCOPED_TRACE(std::string(pavo_type_name(type)) + ", head " + std::to_string(dim));
      AttentionForm form;
      form.k_type = type;
      form.v_type = type;
      form.head_dim = dim;
      form.value_dim = dim;
      form.lengths = {70};
      form.tokens = {3};
      check(form);
    }
  }
}

TEST_P(AttentionTest, GroupsOfHeads) {
  for (const auto& [heads, kv_heads] : {std::pair{1, 1}, {3, 3}, {9, 3}, {8, 1}, {14, 2}, {5, 1}}) {
    AttentionForm form;
    form.heads = heads;
    form.kv_heads = kv_heads;
    form.head_dim = 64;
    form.value_dim = 64;
    form.lengths = {90};
    form.tokens = {4};
    form.k_type = PAVO_TYPE_F16;
    form.v_type = PAVO_TYPE_F16;
    check(form);
  }
}

TEST_P(AttentionTest, PromptsAndBatches) {
  for (const int32_t type : kKvTypes) {
    SCOPED_TRACE(pavo_type_name(type));
    AttentionForm form;
    form.k_type = type;
    form.v_type = type;
    form.heads = 6;
    form.kv_heads = 2;
    form.lengths = {100};
    form.tokens = {100};
    check(form);
    form.lengths = {3, 200, 65, 1};
    form.tokens = {1, 1, 1, 1};
    form.padding = 2;
    check(form);
    form.lengths = {20, 150, 9};
    form.tokens = {20, 30, 0};
    check(form);
  }
}

TEST_P(AttentionTest, MasksByPosition) {
  for (const int32_t window : {0, 1, 5, 64, 1000}) {
    for (const int32_t causal : {0, 1}) {
      SCOPED_TRACE("window " + std::to_string(window) + ", causal " + std::to_string(causal));
      AttentionForm form;
      form.window = window;
      form.causal = causal;
      form.lengths = {140};
      form.tokens = {11};
      check(form);
    }
  }
}

TEST_P(AttentionTest, PagesOutsideOfTheWindowAreNotRead) {
  AttentionForm form;
  form.window = 70;
  form.lengths = {300};
  form.tokens = {2};
  OpCase test_case = make_attention(random_, form);
  const Expected expected = expect_attention(test_case, Arithmetic::kF32);
  // Rows 0..191 are before every window: rows 298 and 299 see 229.. and later.
  HostTensor& table = test_case.tensors[test_case.inputs[7]];
  const int32_t nowhere[] = {-1, 1 << 30, INT32_MIN};
  std::memcpy(table.bytes.data(), nowhere, sizeof nowhere);
  expect_close(test_case, {expected});
}

TEST_P(AttentionTest, ScoreModifiers) {
  for (int bits = 0; bits < 8; ++bits) {
    SCOPED_TRACE("modifiers " + std::to_string(bits));
    AttentionForm form;
    form.heads = 4;
    form.kv_heads = 2;
    form.softcap = (bits & 1) != 0 ? 5.0F : 0.0F;
    form.sinks = (bits & 2) != 0;
    form.slopes = (bits & 4) != 0;
    form.lengths = {90, 33};
    form.tokens = {5, 1};
    check(form);
  }
}

TEST_P(AttentionTest, MaskAndRowList) {
  AttentionForm form;
  form.heads = 4;
  form.kv_heads = 2;
  form.lengths = {80};
  form.tokens = {6};
  form.causal = 0;
  form.mask_rows = 6;
  check(form);
  form.mask_rows = 0;
  form.list_rows = 17;
  check(form);
  form.causal = 1;
  form.sinks = true;
  check(form);
}

TEST_P(AttentionTest, ValuesInTheKeys) {
  for (const int32_t type : kKvTypes) {
    AttentionForm form;
    form.k_type = type;
    form.v_in_k = true;
    form.heads = 8;
    form.head_dim = 96;
    form.value_dim = 64;
    form.lengths = {77};
    form.tokens = {2};
    check(form);
    form.head_dim = 50;
    form.value_dim = 47;
    check(form);
  }
}

TEST_P(AttentionTest, ValuesOfAnotherWidth) {
  AttentionForm form;
  form.head_dim = 96;
  form.value_dim = 64;
  form.lengths = {77};
  form.tokens = {2};
  check(form);
  form.value_dim = 130;
  form.k_type = PAVO_TYPE_Q8_0;
  form.v_type = PAVO_TYPE_F16;
  check(form);
}

TEST_P(AttentionTest, LargeScoresDoNotOverflow) {
  AttentionForm form;
  form.lengths = {50};
  form.tokens = {2};
  OpCase test_case = make_attention(random_, form);
  test_case.tensors[0] = activation({2, 2, 32}, random_.normals(128, 300));
  expect_close(test_case, {expect_attention(test_case, Arithmetic::kF32)});
}

TEST_P(AttentionTest, TablesThatLeadNowhereDoNoHarm) {
  AttentionForm form;
  form.lengths = {100};
  const auto broken = [&](size_t input, int32_t value) {
    OpCase test_case = make_attention(random_, form);
    std::memcpy(test_case.tensors[test_case.inputs[input]].bytes.data(), &value, sizeof value);
    expect_no_harm(test_case);
  };
  broken(4, 1);        // no such sequence
  broken(6, 129);      // more rows than the page table holds
  broken(7, 1 << 30);  // no such page
  broken(7, -1);
}

TEST_P(AttentionTest, RefusesWhatDoesNotFit) {
  AttentionForm form;
  form.heads = 5;
  form.kv_heads = 2;
  expect_refusal(make_attention(random_, form), PAVO_REASON_SHAPE_MULTIPLE, 0);
  form = {};
  OpCase test_case = make_attention(random_, form);
  test_case.tensors[0] = activation({1, 2, 31}, random_.normals(62));
  expect_refusal(test_case, PAVO_REASON_SHAPE_MISMATCH, 1);
  form.v_in_k = true;
  form.value_dim = 33;
  expect_refusal(make_attention(random_, form), PAVO_REASON_PARAM, -1);
  form = {};
  form.window = -1;
  expect_refusal(make_attention(random_, form), PAVO_REASON_PARAM, -1);
  test_case = make_attention(random_, {});
  test_case.inputs[7] = PAVO_NO_TENSOR;
  expect_refusal(test_case, PAVO_REASON_OPERAND, 7);
}

PAVO_INSTANTIATE_OP_TEST(AttentionTest);

}  // namespace
}  // namespace pavo::test
