// Placement, segments, copies and K/V mirrors, on a device that refuses ops by option (an instance
// of the CPU plugin, or the mock device) and a CPU that takes what is left.
#include "core/program.h"

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "tests/core/program_fixture.h"

namespace pavo {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the fixture of this file

void expect_chain_result(Program& program, const Chain& chain) {
  const std::vector<int32_t> ids = {7, 0, 11};
  ASSERT_TRUE(program.set_step(chain.ids, ids).ok());
  const auto stats = program.run();
  ASSERT_TRUE(stats.ok()) << stats.status().to_string();
  std::vector<float> out(3 * kWidth, -1.0f);
  ASSERT_TRUE(program.read_output(chain.out, 0, out).ok());
  for (size_t i = 0; i < out.size(); ++i) {
    const double x = table_value(ids[i / kWidth], static_cast<int64_t>(i % kWidth));
    const double expected = x + x / (1 + std::exp(-x)) * x * x;
    EXPECT_NEAR(out[i], expected, 1e-6) << i;
  }
}

TEST(Program, RunsOnOneDevice) {
  World world("");
  Chain chain;
  auto program = Program::create(std::move(chain.graph), {chain.out}, {}, world.context);
  ASSERT_TRUE(program.ok()) << program.status().to_string();
  expect_chain_result(**program, chain);
  const auto summary =
      summarize((*program)->graph(), (*program)->placement(), world.context.devices);
  EXPECT_EQ(summary.segments, 1u);
  EXPECT_EQ(summary.shares[0].nodes, 4u);
  EXPECT_TRUE(summary.refusals.empty());
}

TEST(Program, RefusedNodesRunElsewhereWithTheSameResult) {
  for (const char* refused : {"glu", "binary", "embed", "embed,glu", "binary,glu"}) {
    SCOPED_TRACE(refused);
    World world(refused);
    Chain chain;
    auto program = Program::create(std::move(chain.graph), {chain.out}, {}, world.context);
    ASSERT_TRUE(program.ok()) << program.status().to_string();
    expect_chain_result(**program, chain);
    expect_chain_result(**program, chain);  // nothing is left over from the first run
    const auto summary =
        summarize((*program)->graph(), (*program)->placement(), world.context.devices);
    EXPECT_GT(summary.segments, 1u);
    ASSERT_FALSE(summary.refusals.empty());
    EXPECT_EQ(summary.refusals[0].reason, PAVO_REASON_POLICY);
    EXPECT_NE(to_line(summary).find("refused by "), std::string::npos) << to_line(summary);
  }
}

TEST(Program, CountsWhatItMoves) {
  World world("glu");
  Chain chain;
  auto program = Program::create(std::move(chain.graph), {chain.out}, {}, world.context);
  ASSERT_TRUE(program.ok());
  const std::vector<int32_t> ids = {1, 2, 3};
  ASSERT_TRUE((*program)->set_step(chain.ids, ids).ok());
  const auto stats = (*program)->run();
  ASSERT_TRUE(stats.ok());
  // x and its square go to the second device, the gated product comes back.
  EXPECT_EQ(stats->activation_bytes_moved, 3 * 3 * kWidth * 4);
  EXPECT_EQ(stats->launches, 4);
}

TEST(Program, PolicyErrorForbidsFallback) {
  World world("glu");
  Chain chain;
  PlacementOptions options;
  options.fallback = FallbackPolicy::kError;
  const auto program = Program::create(std::move(chain.graph), {chain.out}, options, world.context);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().code(), Code::kNoBackend);
  EXPECT_NE(program.status().message().find("glu 'gated'"), std::string::npos)
      << program.status().message();
}

TEST(Program, NodeThatNobodyRunsNamesEveryRefusal) {
  World world("glu");
  world.second = open_cpu("glu");
  world.context.devices = {world.first.get(), world.second.get()};
  Chain chain;
  const auto program = Program::create(std::move(chain.graph), {chain.out}, {}, world.context);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().code(), Code::kNoBackend);
  EXPECT_NE(program.status().message().find("no device runs glu 'gated'"), std::string::npos);
}

TEST(Program, StepTensorsMustBeSet) {
  World world("");
  Chain chain;
  auto program = Program::create(std::move(chain.graph), {chain.out}, {}, world.context);
  ASSERT_TRUE(program.ok());
  EXPECT_FALSE((*program)->run().ok());
  const std::vector<int32_t> short_ids = {1, 2};
  EXPECT_FALSE((*program)->set_step(chain.ids, short_ids).ok());
}

TEST(PlaceRules, ParseAndMatch) {
  EXPECT_FALSE(parse_place_rule("nothing").ok());
  EXPECT_FALSE(parse_place_rule("=cpu").ok());
  EXPECT_FALSE(parse_place_rule("x=").ok());
  World world("");
  Chain chain;
  PlacementOptions options;
  options.rules.push_back(*parse_place_rule("ga*d=nowhere"));
  const auto program = Program::create(std::move(chain.graph), {chain.out}, options, world.context);
  ASSERT_FALSE(program.ok());
  EXPECT_EQ(program.status().code(), Code::kNoBackend);
  EXPECT_NE(program.status().message().find("cpu"), std::string::npos);
}

// ---- K/V mirror
// ----------------------------------------------------------------------------------

constexpr int64_t kHeads = 2;
constexpr int64_t kDim = 16;
constexpr int64_t kPages = 4;

// One token a step: its embedding is q, k and v at once.
struct TokenStep {
  Graph graph{Bucket{1, 1, 1, 256}};
  TensorId ids, rows, row_seq, seq_rows, lengths, pages, slots, out;

  explicit TokenStep(int32_t kv_type) {
    const TensorId table = must(graph.add_weight("table", PAVO_TYPE_F32, {kVocabulary, kWidth}));
    ids = must(graph.add_step("ids", {1}));
    rows = must(graph.add_step("rows", {1}));
    row_seq = must(graph.add_step("row_seq", {1}));
    seq_rows = must(graph.add_step("seq_rows", {2}));
    lengths = must(graph.add_step("lengths", {1}));
    pages = must(graph.add_step("pages", {1, kPages}));
    slots = must(graph.add_step("slots", {1}));
    const TensorId flat = add(graph, pavo_op_embed, "x", {table, ids}, pavo_embed_params{});
    const TensorId x = must(graph.add_reshape(flat, {1, kHeads, kDim}));
    const Shape shape = {kPages, kHeads, PAVO_KV_PAGE_ROWS, kDim};
    const TensorId k = must(graph.add_kv_pool("k", kv_type, shape));
    const TensorId v = must(graph.add_kv_pool("v", kv_type, shape));
    add(graph, pavo_op_kv_store, "store_k", {x, k, slots}, pavo_kv_store_params{});
    add(graph, pavo_op_kv_store, "store_v", {x, v, slots}, pavo_kv_store_params{});
    pavo_attention_params params = {};
    params.scale = 0.5f;
    params.causal = 1;
    out =
        add(graph,
            pavo_op_attention,
            "attention",
            {x, k, v, rows, row_seq, seq_rows, lengths, pages},
            params);
  }
};

void add_pools(World& world, int32_t kv_type) {
  const Shape shape = {kPages, kHeads, PAVO_KV_PAGE_ROWS, kDim};
  for (const char* name : {"k", "v"}) {
    world.context.kv_pools.emplace(name, std::make_unique<KvPool>(name, kv_type, shape));
  }
}

// Attention output of every step, and the K/V bytes that each step moved.
struct Decoded {
  std::vector<float> outputs;
  std::vector<int64_t> kv_bytes;
};

Decoded decode_tokens(World& world, int32_t kv_type, int32_t steps) {
  Decoded decoded;
  TokenStep step(kv_type);
  auto program = Program::create(std::move(step.graph), {step.out}, {}, world.context);
  EXPECT_TRUE(program.ok()) << program.status().to_string();
  if (!program.ok()) {
    return decoded;
  }
  const std::vector<int32_t> page_table = {2, 0, 3, 1};
  for (int32_t t = 0; t < steps; ++t) {
    const auto set = [&](TensorId id, std::vector<int32_t> values) {
      EXPECT_TRUE((*program)->set_step(id, values).ok());
    };
    set(step.ids, {t % kVocabulary});
    set(step.rows, {t});
    set(step.row_seq, {0});
    set(step.seq_rows, {0, 1});
    set(step.lengths, {t + 1});
    set(step.pages, page_table);
    set(step.slots, {page_table[static_cast<size_t>(t / 64)] * 64 + t % 64});
    const auto stats = (*program)->run();
    EXPECT_TRUE(stats.ok()) << stats.status().to_string();
    decoded.kv_bytes.push_back(stats.ok() ? stats->kv_bytes_moved : -1);
    std::vector<float> out(kHeads * kDim);
    EXPECT_TRUE((*program)->read_output(step.out, 0, out).ok());
    decoded.outputs.insert(decoded.outputs.end(), out.begin(), out.end());
  }
  return decoded;
}

TEST(KvMirror, FallbackCopiesOnlyNewRows) {
  for (const int32_t type : {PAVO_TYPE_F32, PAVO_TYPE_F16, PAVO_TYPE_Q8_0}) {
    SCOPED_TRACE(pavo_type_name(type));
    World alone("");
    add_pools(alone, type);
    const Decoded expected = decode_tokens(alone, type, 150);
    World split("attention");
    add_pools(split, type);
    const Decoded got = decode_tokens(split, type, 150);
    EXPECT_EQ(expected.outputs, got.outputs);
    pavo_kv_layout layout = {};
    ASSERT_EQ(pavo_kv_layout_init(type, kDim, &layout), 0);
    const int64_t row = layout.low_row_bytes + layout.scale_row_bytes;
    for (size_t t = 0; t < got.kv_bytes.size(); ++t) {
      EXPECT_EQ(expected.kv_bytes[t], 0);
      EXPECT_EQ(got.kv_bytes[t], 2 * kHeads * row) << "step " << t;
    }
  }
}

TEST(KvMirror, LateReaderGetsEarlierRows) {
  // The first program's attention runs where the rows are; the second reads elsewhere and must
  // fetch everything that was stored before it existed.
  World world("");
  add_pools(world, PAVO_TYPE_F16);
  (void)decode_tokens(world, PAVO_TYPE_F16, 70);
  KvPool& pool = *world.context.kv_pools.at("k");
  ASSERT_TRUE(pool.replica(*world.second).ok());
  std::vector<std::byte> staging;
  int64_t bytes = 0;
  ASSERT_TRUE(pool.refresh(*world.second, staging, &bytes).ok());
  EXPECT_EQ(bytes, 70 * kHeads * kDim * 2);
  bytes = 0;
  ASSERT_TRUE(pool.refresh(*world.second, staging, &bytes).ok());
  EXPECT_EQ(bytes, 0);
}

}  // namespace
}  // namespace pavo
