// Whole models against the logits of their original implementations (../shared/reference-models).
#include <cmath>
#include <filesystem>

#include <gtest/gtest.h>

#include "llm/safetensors.h"
#include "llm/sampler.h"
#include "tests/llm/engine_fixture.h"

namespace pavo::llm {
namespace {

struct ReferenceData {
  std::vector<int32_t> tokens;  // input_ids and generated, one after the other
  size_t prompt = 0;            // input_ids
  std::vector<int32_t> generated;
  std::vector<float> logits;  // of the prompt's rows, then those that gave `generated`
  size_t vocabulary = 0;
};

template <typename T>
std::vector<T> values_of(const SafetensorsFiles& files, const char* name) {
  const FileTensor* tensor = files.tensors().find(name);
  EXPECT_NE(tensor, nullptr) << name;
  std::vector<T> values(tensor == nullptr ? 0 : tensor->size_bytes / sizeof(T));
  if (!values.empty()) {
    std::memcpy(values.data(), tensor->data, tensor->size_bytes);
  }
  return values;
}

ReferenceData read_reference(const std::string& directory) {
  ReferenceData data;
  const auto files = SafetensorsFiles::open_file(directory + "/reference.safetensors");
  EXPECT_TRUE(files.ok()) << files.status().to_string();
  if (!files.ok()) {
    return data;
  }
  data.tokens = values_of<int32_t>(*files, "input_ids");
  data.prompt = data.tokens.size();
  data.generated = values_of<int32_t>(*files, "generated");
  data.tokens.insert(data.tokens.end(), data.generated.begin(), data.generated.end());
  data.logits = values_of<float>(*files, "logits");
  data.vocabulary = data.logits.size() / data.prompt;
  // generated_logits[0] belongs to the last row of the prompt, which `logits` has already.
  const auto more = values_of<float>(*files, "generated_logits");
  data.logits.insert(
      data.logits.end(), more.begin() + static_cast<int64_t>(data.vocabulary), more.end());
  return data;
}

double relative_l2(std::span<const float> got, std::span<const float> expected) {
  double difference = 0;
  double norm = 0;
  for (size_t i = 0; i < got.size(); ++i) {
    difference += std::pow(static_cast<double>(got[i]) - expected[i], 2);
    norm += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / norm);
}

std::vector<double> log_softmax(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double total = 0;
  for (const float logit : logits) {
    total += std::exp(logit - largest);
  }
  std::vector<double> out;
  for (const float logit : logits) {
    out.push_back(logit - largest - std::log(total));
  }
  return out;
}

double kl_divergence(std::span<const float> expected, std::span<const float> got) {
  const auto p = log_softmax(expected);
  const auto q = log_softmax(got);
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    sum += std::exp(p[i]) * (p[i] - q[i]);
  }
  return sum;
}

struct Case {
  const char* family;
  int32_t kv_type;
  bool exact;
  int32_t batch;
  const char* refused;  // ops that the first device refuses, so that others run them
};

class ReferenceModel : public testing::TestWithParam<Case> {};

// Logits of every token but the last, teacher-forced on the reference's tokens: the prompt in steps
// of at most batch tokens, the rest one by one.
Result<std::vector<float>> run_reference(const ReferenceData& data, Engine& engine) {
  PAVO_ASSIGN_OR_RETURN(const SequenceId sequence, engine.create_sequence());
  const std::span<const int32_t> tokens(data.tokens);
  PAVO_ASSIGN_OR_RETURN(
      std::vector<float> logits, engine.decode(sequence, tokens.first(data.prompt), Outputs::kAll));
  for (size_t i = data.prompt; i + 1 < tokens.size(); ++i) {
    PAVO_ASSIGN_OR_RETURN(
        const std::vector<float> row,
        engine.decode(sequence, tokens.subspan(i, 1), Outputs::kLast));
    logits.insert(logits.end(), row.begin(), row.end());
  }
  return logits;
}

TEST_P(ReferenceModel, MatchesTheOriginal) {
  const Case& c = GetParam();
  const std::string directory =
      environment_or("PAVO_TEST_REFERENCES", PAVO_SHARED_DIR "/reference-models") + "/" + c.family;
  if (!std::filesystem::exists(directory)) {
    GTEST_SKIP() << "no reference data at " << directory;
  }
  const ReferenceData data = read_reference(directory);
  const auto source = ModelSource::open(directory);
  ASSERT_TRUE(source.ok()) << source.status().to_string();
  EngineOptions options;
  options.k_type = options.v_type = c.kv_type;
  options.exact = c.exact;
  options.batch = c.batch;
  options.context = 128;
  auto devices = *c.refused == '\0' ? test_devices() : refusing_devices(c.refused);
  auto engine = Engine::create(*source, std::move(devices), options);
  ASSERT_TRUE(engine.ok()) << engine.status().to_string();
  const auto logits = run_reference(data, **engine);
  ASSERT_TRUE(logits.ok()) << logits.status().to_string();
  ASSERT_EQ(logits->size(), data.logits.size());

  const size_t rows = data.logits.size() / data.vocabulary;
  double worst = 0;
  double kl = 0;
  size_t greedy = 0;
  for (size_t row = 0; row < rows; ++row) {
    const auto got = std::span(*logits).subspan(row * data.vocabulary, data.vocabulary);
    const auto expected = std::span(data.logits).subspan(row * data.vocabulary, data.vocabulary);
    worst = std::max(worst, relative_l2(got, expected));
    kl += kl_divergence(expected, got) / static_cast<double>(rows);
    if (row + 1 >= data.prompt) {
      greedy += argmax(got) == data.generated[row + 1 - data.prompt] ? 1 : 0;
    }
  }
  std::printf("%s: worst relative L2 %.2e, mean KL %.2e\n", c.family, worst, kl);
  if (c.exact && c.kv_type == PAVO_TYPE_F32) {
    EXPECT_LE(worst, 5e-5);
    EXPECT_LE(kl, 1e-7);
    EXPECT_EQ(greedy, data.generated.size());
  } else {
    // What the cache type itself loses comes on top of the arithmetic's budget.
    EXPECT_LE(kl, c.kv_type == PAVO_TYPE_F16 ? 1e-5 : 2e-3);
  }
  if (*c.refused != '\0') {
    const auto summary = (*engine)->placement_summary();
    ASSERT_TRUE(summary.ok());
    EXPECT_GT(summary->segments, 1u) << "the refusal had no effect";
    ASSERT_FALSE(summary->refusals.empty());
    EXPECT_EQ(summary->refusals[0].reason, PAVO_REASON_POLICY);
  }
}

std::string case_name(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  std::string name = c.family;
  std::replace(name.begin(), name.end(), '-', '_');
  name += std::string("_") + pavo_type_name(c.kv_type) + (c.exact ? "_exact" : "_default");
  name += "_batch" + std::to_string(c.batch);
  std::string refused = c.refused;
  std::replace(refused.begin(), refused.end(), ',', '_');
  return refused.empty() ? name : name + "_without_" + refused;
}

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const char* family :
       {"llama-hs128", "llama-hs64-llama3rope", "llama-hs256-falcon3", "mistral-hs128"}) {
    cases.push_back({family, PAVO_TYPE_F32, true, 512, ""});
    cases.push_back({family, PAVO_TYPE_F32, true, 7, ""});
    cases.push_back({family, PAVO_TYPE_F16, false, 512, ""});
    cases.push_back({family, PAVO_TYPE_Q8_0, false, 16, ""});
  }
  cases.push_back({"llama-hs128", PAVO_TYPE_F32, true, 512, "attention"});
  cases.push_back({"llama-hs128", PAVO_TYPE_F16, false, 13, "attention"});
  cases.push_back({"mistral-hs128", PAVO_TYPE_Q8_0, false, 13, "attention"});
  cases.push_back({"mistral-hs128", PAVO_TYPE_F32, true, 11, "matmul,norm"});
  cases.push_back({"mistral-hs128", PAVO_TYPE_F32, true, 11, "kv_store"});
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Families, ReferenceModel, testing::ValuesIn(all_cases()), case_name);

}  // namespace
}  // namespace pavo::llm
