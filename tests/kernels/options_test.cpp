#include "kernels/host/options.h"

#include "tests/kernels/fake_plugin.h"

namespace pavo::cuda {
namespace {

struct Parsed {
  int32_t code;
  Options options;
  std::string message;
};

pavo_value int_value(std::string_view key, int64_t value) {
  return {sizeof(pavo_value), PAVO_VALUE_INT, sdk::string(key), value, 0, {}};
}
pavo_value string_value(std::string_view key, std::string_view value) {
  return {sizeof(pavo_value), PAVO_VALUE_STRING, sdk::string(key), 0, 0, sdk::string(value)};
}

Parsed parse(const pavo_value& value) {
  const pavo_value* const items[] = {&value};
  const pavo_values list = {sizeof list, 1, items};
  Parsed parsed = {};
  pavo_error error = make_error();
  parsed.code = parse_options(fake_info(), &list, &parsed.options, &error);
  parsed.message = text_of(error);
  return parsed;
}

TEST(OptionsTest, ReadsEveryKind) {
  EXPECT_FALSE(parse(int_value("graphs", 0)).options.graphs);
  EXPECT_TRUE(parse(int_value("sync", 1)).options.sync);
  EXPECT_EQ(parse(int_value("memory_budget_bytes", 1 << 30)).options.memory_budget_bytes, 1 << 30);
  EXPECT_EQ(parse(int_value("fail_alloc_at", 3)).options.fail_alloc_at, 3);
  EXPECT_EQ(
      parse(string_value("refuse", "attention,matmul")).options.refused,
      (std::vector<int32_t>{pavo_op_attention, pavo_op_matmul}));
  const Parsed forced = parse(string_value("force_variant", "binary=fake_add"));
  ASSERT_EQ(forced.options.forced.size(), 1u) << forced.message;
  EXPECT_EQ(forced.options.forced[0].first, pavo_op_binary);
  EXPECT_EQ(forced.options.forced[0].second, "fake_add");
}

TEST(OptionsTest, SaysWhatIsWrong) {
  struct Case {
    pavo_value value;
    const char* text;
  };
  const Case cases[] = {
      {int_value("grafs", 1), "graphs"},
      {int_value("graphs", 2), "0..1"},
      {int_value("memory_budget_bytes", -1), "memory_budget_bytes"},
      {string_value("graphs", "yes"), "expected an integer, got a string"},
      {string_value("refuse", "atention"), "'atention'"},
      {string_value("force_variant", "binary"), "fake_add"},
      {string_value("force_variant", "binary=other"), "fake_add"},
      {string_value("force_variant", "=,="), "expected an op"}};
  for (const Case& c : cases) {
    const Parsed parsed = parse(c.value);
    EXPECT_EQ(parsed.code, PAVO_ERROR_INVALID_ARGUMENT) << c.text;
    EXPECT_NE(parsed.message.find(c.text), std::string::npos) << parsed.message;
  }
}

TEST(OptionsTest, EveryOptionIsDescribedAndItsDefaultIsValid) {
  uint32_t count = 0;
  const pavo_option_info* const* infos = option_infos(&count);
  ASSERT_GT(count, 0u);
  for (uint32_t i = 0; i < count; ++i) {
    const std::string_view key = sdk::view(infos[i]->key);
    const std::string text(sdk::view(infos[i]->default_value));
    EXPECT_FALSE(sdk::view(infos[i]->text).empty()) << key;
    const pavo_value value = infos[i]->type == PAVO_VALUE_INT ? int_value(key, std::stoll(text))
                                                              : string_value(key, text);
    EXPECT_EQ(parse(value).code, PAVO_OK) << key;
  }
}

}  // namespace
}  // namespace pavo::cuda
