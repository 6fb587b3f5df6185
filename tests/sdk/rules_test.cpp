// The C++ helpers for plugin authors: rules, their texts, and the table that is made of them.
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "pavo/op_table.h"

#include "tests/ops/family.h"
#include "tests/ops/op_case.h"
#include "tests/random.h"

namespace pavo::sdk {
namespace {

using Table = OpTable<int>;  // what a kernel runs is the plugin's own business

std::vector<Rule> silu_rules() {
  return {
      param("kind", &pavo_glu_params::kind, {PAVO_GLU_SILU}),
      activation(in(0)),
      activation(in(1)),
      activation(out(0)),
      same_shape(in(1), in(0)),
      same_shape(out(0), in(0))};
}

Table silu_table() {
  std::vector<Rule> fast = silu_rules();
  fast.push_back(multiple_of(in(0), -1, 8));
  fast.push_back(dim_in(in(0), -1, 8, 4096));
  return Table(
      {{pavo_op_glu, "silu_fast", PAVO_ACCEPT, fast, 1},
       {pavo_op_glu, "silu_any", PAVO_ACCEPT_SLOW, silu_rules(), 2}});
}

// A gate [2, columns] and as much of up.
test::OpCase silu_case(int64_t columns) {
  test::OpCase result;
  result.set_params(pavo_op_glu, pavo_glu_params{0, PAVO_GLU_SILU, 0, 0});
  result.add_input(test::activation({2, columns}, std::vector<float>(2 * columns)));
  result.add_input(test::activation({2, columns}, std::vector<float>(2 * columns)));
  result.add_output(test::output({2, columns}));
  return result;
}

pavo_verdict empty_verdict() {
  pavo_verdict verdict{};
  verdict.struct_size = sizeof verdict;
  clear_verdict(&verdict);
  return verdict;
}

pavo_verdict ask(const Table& table, const test::OpCase& test_case) {
  const test::CaseGraph built(test_case);
  const GraphCopy copy(&built.graph);
  const NodeQuery query(nullptr, copy.graph(), *copy.graph().nodes[0]);
  pavo_verdict verdict = empty_verdict();
  if (check_node(query, &verdict)) {
    table.find(query, &verdict);
  }
  return verdict;
}

OptionValues values_of(const Table& table, const std::string& key, const std::string& text) {
  const pavo_value value = {sizeof value, PAVO_VALUE_STRING, string(key), 0, 0, string(text)};
  const pavo_value* const items[] = {&value};
  const pavo_values list = {sizeof list, 1, items};
  return OptionValues(table.options(), &list);
}

std::string error_of(Table table, const std::string& key, const std::string& text) {
  try {
    table.use(values_of(table, key, text));
  } catch (const Error& error) {
    EXPECT_EQ(error.code, PAVO_ERROR_INVALID_ARGUMENT);
    return error.message;
  }
  return "";
}

TEST(OpTable, TakesTheFirstKernelWhoseRulesHold) {
  const pavo_verdict fast = ask(silu_table(), silu_case(16));
  EXPECT_EQ(fast.decision, PAVO_ACCEPT);
  EXPECT_STREQ(fast.variant, "silu_fast");
  const pavo_verdict slow = ask(silu_table(), silu_case(17));
  EXPECT_EQ(slow.decision, PAVO_ACCEPT_SLOW);
  EXPECT_STREQ(slow.variant, "silu_any");
  EXPECT_EQ(slow.reason, PAVO_REASON_NONE);
  EXPECT_STREQ(slow.text, "");
}

TEST(OpTable, RefusesWithTheRuleThatFails) {
  test::OpCase wrong = silu_case(16);
  wrong.set_params(pavo_op_glu, pavo_glu_params{0, PAVO_GLU_GELU_ERF, 0, 0});
  const pavo_verdict kind = ask(silu_table(), wrong);
  EXPECT_EQ(kind.decision, PAVO_REFUSE);
  EXPECT_EQ(kind.reason, PAVO_REASON_PARAM);
  EXPECT_EQ(kind.attribute, static_cast<int32_t>(offsetof(pavo_glu_params, kind)));
  EXPECT_STREQ(kind.text, "expected kind of 0, got 2");

  wrong = silu_case(16);
  wrong.tensors[1].desc.shape[0] = 1;
  const pavo_verdict shape = ask(silu_table(), wrong);
  EXPECT_EQ(shape.reason, PAVO_REASON_SHAPE_MISMATCH);
  EXPECT_EQ(shape.operand, 1);
  EXPECT_EQ(shape.attribute, 0);
  EXPECT_EQ(shape.expected, 2);
  EXPECT_EQ(shape.actual, 1);
  EXPECT_STREQ(shape.text, "input 1: expected dimension 0 to be 2, got 1");

  wrong = silu_case(16);
  wrong.tensors[0].desc.stride[0] = 66;
  EXPECT_EQ(ask(silu_table(), wrong).reason, PAVO_REASON_STRIDE);
}

// A kernel that overlooks an operand computes something else.
TEST(OpTable, RefusesOperandsThatNoRuleNames) {
  std::vector<Rule> rules = silu_rules();
  rules.erase(rules.begin() + 2);  // activation(in(1))
  rules.erase(rules.begin() + 3);  // same_shape(in(1), in(0))
  const Table table({{pavo_op_glu, "packed", PAVO_ACCEPT, rules, 1}});
  const pavo_verdict verdict = ask(table, silu_case(16));
  EXPECT_EQ(verdict.reason, PAVO_REASON_OPERAND);
  EXPECT_EQ(verdict.operand, 1);
  EXPECT_STREQ(verdict.text, "kernel packed takes no input 1");
}

TEST(OpTable, NeedsOperandsUnlessTheyAreOptional) {
  test::OpCase packed = silu_case(16);
  packed.inputs.pop_back();
  EXPECT_EQ(ask(silu_table(), packed).reason, PAVO_REASON_OPERAND);
  std::vector<Rule> rules = silu_rules();
  rules[2] = optional(rules[2]);
  rules[4] = optional(rules[4]);
  const Table table({{pavo_op_glu, "both", PAVO_ACCEPT, rules, 1}});
  EXPECT_EQ(ask(table, packed).decision, PAVO_ACCEPT);
}

TEST(OpTable, ListsItsKernelsForForceVariant) {
  EXPECT_EQ(
      silu_table().options()[1].text,
      "op=kernel,op=kernel: the only kernel allowed for these ops; values: "
      "glu=silu_fast|silu_any");
  Table forced = silu_table();
  forced.use(values_of(forced, "force_variant", "glu=silu_any"));
  EXPECT_STREQ(ask(forced, silu_case(16)).variant, "silu_any");
  EXPECT_EQ(
      error_of(silu_table(), "force_variant", "glu=silu"),
      "option force_variant: no kernel 'glu=silu', expected one of glu=silu_fast|silu_any");
  EXPECT_EQ(
      error_of(silu_table(), "force_variant", "swim=silu"),
      "option force_variant: there is no op 'swim'");
}

TEST(OpTable, RefusesWhatTheOptionNames) {
  Table table = silu_table();
  table.use(values_of(table, "refuse", "norm,glu"));
  const pavo_verdict verdict = ask(table, silu_case(16));
  EXPECT_EQ(verdict.reason, PAVO_REASON_POLICY);
  EXPECT_STREQ(verdict.text, "the option refuse names glu");
  EXPECT_EQ(error_of(silu_table(), "refuse", "glu,swim"), "option refuse: there is no op 'swim'");
}

TEST(OpTable, TellsWhatItSupports) {
  const std::string text = silu_table().support_table();
  EXPECT_NE(
      text.find("| glu | silu_fast | tuned | kind: 0; input 0: f32 activation;"), std::string::npos)
      << text;
  EXPECT_NE(text.find("input 0: dimension -1 a multiple of 8"), std::string::npos) << text;
}

TEST(OptionValues, AreCheckedAgainstTheList) {
  const std::vector<Option> known = {
      {"threads", PAVO_VALUE_INT, "threads", "4", 0, 64},
      {"share", PAVO_VALUE_FLOAT, "share of the memory", "0.5", 0, 1}};
  const auto error_with = [&](const pavo_value& value) -> std::string {
    const pavo_value* const items[] = {&value};
    const pavo_values list = {sizeof list, 1, items};
    try {
      const OptionValues values(known, &list);
      return "threads=" + std::to_string(values.integer("threads"));
    } catch (const Error& error) {
      return error.message;
    }
  };
  const OptionValues defaults(known, nullptr);
  EXPECT_EQ(defaults.integer("threads"), 4);
  EXPECT_EQ(defaults.number("share"), 0.5);
  pavo_value value = {sizeof value, PAVO_VALUE_INT, string("threads"), 8, 0, {}};
  EXPECT_EQ(error_with(value), "threads=8");
  value.int_value = 65;
  EXPECT_EQ(error_with(value), "option threads: expected 0 to 64, got 65");
  value.type = PAVO_VALUE_STRING;
  EXPECT_EQ(error_with(value), "option threads: expected an integer, got a value of type 2");
  value.key = string("thread");
  EXPECT_EQ(error_with(value), "there is no option 'thread'");
  value = {sizeof value, PAVO_VALUE_FLOAT, string("share"), 0, std::nan(""), {}};
  EXPECT_EQ(error_with(value), "option share: expected 0 to 1, got nan");
}

// The graph of a plan may be gone when the plan runs.
TEST(GraphCopy, OutlivesItsGraph) {
  test::OpCase test_case = silu_case(16);
  auto built = std::make_unique<test::CaseGraph>(test_case);
  const GraphCopy copy(&built->graph);
  built.reset();
  test_case = test::OpCase();
  const pavo_node& node = *copy.graph().nodes[0];
  EXPECT_EQ(node.op, pavo_op_glu);
  EXPECT_EQ(params<pavo_glu_params>(node).kind, PAVO_GLU_SILU);
  EXPECT_EQ(input(copy.graph(), node, 1)->shape[1], 16);
  EXPECT_EQ(copy.fault(0), "");
}

// Sizes that the host says are those that kernels touch, for every op of the kit.
TEST(NodeChecks, PassEveryCaseOfTheKit) {
  test::Random random(7);
  for (const test::OpName& op : test::all_ops()) {
    for (const test::Family& family : test::families_of(op.op)) {
      const test::OpCase test_case = family.make(random, test::base_sizes(family));
      const test::CaseGraph built(test_case);
      const GraphCopy copy(&built.graph);
      pavo_verdict verdict = empty_verdict();
      EXPECT_TRUE(check_node(NodeQuery(nullptr, copy.graph(), *copy.graph().nodes[0]), &verdict))
          << op.name << " " << family.name << ": " << verdict.text;
      for (const test::HostTensor& tensor : test_case.tensors) {
        EXPECT_LE(extent_bytes(tensor.desc), static_cast<int64_t>(tensor.bytes.size()));
      }
    }
  }
}

}  // namespace
}  // namespace pavo::sdk
