#include "kernels/ops/attention.cuh"

#include <algorithm>

#include <gtest/gtest.h>

#include "plugins/cuda-sm61/arch.h"
#include "tests/kernels/ops/attention_case.h"
#include "tests/kernels/ops/emulator/emulator.h"

namespace pavo::cuda::testing {
namespace {

using Strings = std::vector<std::string>;

constexpr Kernel kGeneric = entry<AttentionGeneric<Sm61>, Sm61>();
constexpr Kernel kDecode4 = entry<AttentionDecode<Sm61, 4, 8>, Sm61>();
constexpr Kernel kDecode8 = entry<AttentionDecode<Sm61, 8, 8>, Sm61>();
constexpr Kernel kDecode16 = entry<AttentionDecode<Sm61, 16, 4>, Sm61>();
constexpr Kernel kPrompt64 = entry<AttentionPrompt<Sm61, 1>, Sm61>();
constexpr Kernel kPrompt128 = entry<AttentionPrompt<Sm61, 2>, Sm61>();
constexpr Kernel kPrompt256 = entry<AttentionPrompt<Sm61, 4>, Sm61>();

// Every kernel that takes the case, the threads of a block in both orders.
void check(const AttentionCase& c, const std::vector<Kernel>& kernels) {
  for (const emulator::Order order : {emulator::Order::kForward, emulator::Order::kReverse}) {
    emulator::set_order(order);
    for (const Kernel& kernel : kernels) {
      EXPECT_EQ(attention_difference(c, kernel), "") << kernel.name;
    }
  }
  emulator::set_order(emulator::Order::kForward);
}

AttentionCase few_tokens() {
  AttentionCase c;
  c.sequences = {{1, 130}, {2, 65}, {0, 0}, {1, 1}};
  c.padding = 2;
  return c;
}

TEST(Attention, RaggedSequencesAndPadding) {
  check(few_tokens(), {kGeneric, kDecode4, kDecode8, kPrompt64, kPrompt128});
  AttentionCase c = few_tokens();
  c.sm_count = 64;  // K/V split over blocks also for prompts
  check(c, {kDecode4, kPrompt64});
  c.sm_count = 0;  // one block, whole results
  check(c, {kDecode4, kPrompt64});
}

TEST(Attention, EveryPairOfCacheTypes) {
  const int32_t types[] = {PAVO_TYPE_F32, PAVO_TYPE_F16, PAVO_TYPE_BF16, PAVO_TYPE_Q8_0};
  for (const int32_t key_type : types) {
    for (const int32_t value_type : types) {
      AttentionCase c;
      c.key_type = key_type;
      c.value_type = value_type;
      c.sequences = {{2, 70}};
      c.heads = 2, c.kv_heads = 1;
      check(c, {kGeneric, kDecode4, kPrompt64});
    }
  }
}

TEST(Attention, HeadSizes) {
  const auto sized = [](int64_t key_dims, int64_t value_dims) {
    AttentionCase c;
    c.key_dims = key_dims;
    c.value_dims = value_dims;
    c.key_type = PAVO_TYPE_Q8_0;
    c.sequences = {{1, 66}};
    c.heads = 2, c.kv_heads = 2;
    return c;
  };
  check(sized(80, 80), {kGeneric, kDecode4, kPrompt128});
  check(sized(96, 96), {kDecode4, kPrompt128});
  check(sized(192, 128), {kDecode4, kPrompt128});
  check(sized(256, 256), {kDecode4, kPrompt256});
  check(sized(320, 256), {kDecode4, kDecode8, kPrompt256});
  check(sized(512, 512), {kGeneric, kDecode4, kDecode8});
  check(sized(8, 8), {kDecode4, kPrompt64});
  check(sized(1, 3), {kGeneric});
  check(sized(1000, 1024), {kGeneric});
}

TEST(Attention, EveryOptionWithEveryKernel) {
  for (const int option : {0, 1, 2, 3, 4}) {
    AttentionCase c = few_tokens();
    c.softcap = option == 0 || option == 4 ? 1.5f : 0.0f;
    c.sinks = option == 1 || option == 4;
    c.slopes = option == 2 || option == 4;
    c.window = option == 3 || option == 4 ? 20 : 0;
    c.causal = option == 3 ? 0 : 1;
    check(c, {kGeneric, kDecode4, kPrompt64});
    c.sm_count = 64;
    check(c, {kDecode8});
  }
}

TEST(Attention, GroupsOfEverySize) {
  for (const int64_t group : {1, 3, 5, 16, 17}) {
    AttentionCase c;
    c.heads = 2 * group;
    c.sequences = {{3, 40}, {1, 90}};
    check(c, {kDecode8, kPrompt64});
    if (2 * group > 8) {
      check(c, {kDecode16});
    }
  }
}

TEST(Attention, LongPromptSkipsWhatIsNotSeen) {
  AttentionCase c;
  c.heads = 3, c.kv_heads = 1;
  c.sequences = {{100, 300}, {33, 33}};
  c.padding = 5;
  check(c, {kPrompt64});
  c.window = 70;
  c.sm_count = 16;
  check(c, {kPrompt64});
}

TEST(Attention, ValuesInsideOfKeys) {
  AttentionCase c = few_tokens();
  c.key_dims = 96, c.value_dims = 64;
  c.values_in_keys = true;
  c.key_type = c.value_type = PAVO_TYPE_Q8_0;
  check(c, {kGeneric, kDecode4, kPrompt64});
}

TEST(Attention, MaskAndRowListAreTheGenericKernels) {
  AttentionCase c = few_tokens();
  c.mask_columns = 7;
  check(c, {kGeneric});
  EXPECT_NE(attention_difference(c, kDecode4), "");
  EXPECT_NE(attention_difference(c, kPrompt64), "");
  c.mask_columns = 0;
  c.list_columns = 90;
  c.key_dims = 40;
  check(c, {kGeneric});
  c.sinks = true;
  c.mask_columns = 200;  // more columns than rows
  check(c, {kGeneric});
}

TEST(Attention, BadStepTensorsAreNotFollowed) {
  AttentionCase c = few_tokens();
  c.lost_token = 1;
  c.lost_page = 1;
  check(c, {kGeneric, kDecode4, kDecode8, kPrompt64});
  c.sm_count = 64;
  check(c, {kDecode4});
}

TEST(Attention, MisalignedViewsRunOnTheGenericKernel) {
  AttentionCase c = few_tokens();
  c.placing = {1, 1};
  Strings launched;
  EXPECT_EQ(attention_difference(c, kDecode4, &launched), "");
  EXPECT_EQ(launched, Strings{"attention_generic"});
  c.placing = {4, 4};
  EXPECT_EQ(attention_difference(c, kPrompt64, &launched), "");
  EXPECT_EQ(launched, (Strings{"attention_prompt_64"}));
}

// The variant that the host would take.
std::string chosen(const AttentionCase& c) {
  Strings launched;
  for (const Kernel& kernel : attention_kernels<Sm61>()) {
    const std::string difference = attention_difference(c, kernel, &launched);
    if (difference.rfind("refused", 0) != 0) {
      EXPECT_EQ(difference, "");
      return launched.front();
    }
  }
  return "";
}

TEST(Attention, TheListPutsTheBestFirst) {
  AttentionCase c;
  c.sequences = {{1, 10}};
  EXPECT_EQ(chosen(c), "attention_decode_4");
  c.heads = 12;
  EXPECT_EQ(chosen(c), "attention_decode_8");
  c.heads = 32;
  EXPECT_EQ(chosen(c), "attention_decode_16");
  c.key_dims = 576, c.value_dims = 512;
  EXPECT_EQ(chosen(c), "attention_decode_8");
  c = AttentionCase();
  c.sequences = {{17, 17}};
  EXPECT_EQ(chosen(c), "attention_prompt_64");
  c.key_dims = c.value_dims = 72;
  EXPECT_EQ(chosen(c), "attention_prompt_128");
  c.key_dims = c.value_dims = 44;
  EXPECT_EQ(chosen(c), "attention_generic");
}

}  // namespace
}  // namespace pavo::cuda::testing
