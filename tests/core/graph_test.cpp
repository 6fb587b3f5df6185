#include "core/graph.h"

#include <gtest/gtest.h>

#include "core/graph_view.h"
#include "core/op_rules.h"

namespace pavo {
namespace {

TensorId must(Result<TensorId> id) {
  EXPECT_TRUE(id.ok()) << id.status().to_string();
  return id.ok() ? *id : kNoTensor;
}

// embed -> matmul, the least graph with a weight.
struct SmallGraph {
  Graph graph{Bucket{3, 1, 3, 64}};
  TensorId table, ids, x, w;

  SmallGraph() {
    table = must(graph.add_weight("table", PAVO_TYPE_F32, {10, 64}));
    ids = must(graph.add_step("ids", {3}));
    x = graph.add(pavo_op_embed, "embed", {table, ids}, pavo_embed_params{}).value()[0];
    w = must(graph.add_weight("w", PAVO_TYPE_Q4_1, {5, 64}));
  }
};

TEST(Graph, InfersShapesAndNotesUses) {
  SmallGraph g;
  const auto out = g.graph.add(pavo_op_matmul, "mm", {g.x, g.w}, pavo_matmul_params{});
  ASSERT_TRUE(out.ok()) << out.status().to_string();
  EXPECT_EQ(g.graph.tensor((*out)[0]).shape, (Shape{3, 5}));
  EXPECT_EQ(g.graph.tensor(g.w).uses, PAVO_USE_MATMUL);
  EXPECT_EQ(g.graph.tensor(g.table).uses, PAVO_USE_GATHER);
  // The table as head as well: tied weights carry both uses.
  ASSERT_TRUE(g.graph.add(pavo_op_matmul, "head", {g.x, g.table}, pavo_matmul_params{}).ok());
  EXPECT_EQ(g.graph.tensor(g.table).uses, PAVO_USE_GATHER | PAVO_USE_MATMUL);
}

TEST(Graph, RefusesWhatDoesNotFit) {
  SmallGraph g;
  const TensorId narrow = must(g.graph.add_weight("narrow", PAVO_TYPE_F32, {5, 32}));
  const auto bad = g.graph.add(pavo_op_matmul, "mm", {g.x, narrow}, pavo_matmul_params{});
  ASSERT_FALSE(bad.ok());
  EXPECT_NE(bad.status().message().find("expected a weight [N, 64]"), std::string::npos)
      << bad.status().message();
  EXPECT_NE(bad.status().message().find("'narrow'"), std::string::npos);
  EXPECT_FALSE(g.graph.add(pavo_op_matmul, "mm", {g.x}, pavo_matmul_params{}).ok());
  EXPECT_FALSE(g.graph.add(pavo_op_matmul, "mm", {g.x, 1234}, pavo_matmul_params{}).ok());
  EXPECT_FALSE(g.graph.add(99, "nothing", {g.x}, pavo_matmul_params{}).ok());
  EXPECT_EQ(g.graph.nodes().size(), 1u);
}

TEST(Graph, RefusesHostileShapes) {
  Graph graph{Bucket{}};
  EXPECT_FALSE(graph.add_weight("w", PAVO_TYPE_F32, {int64_t{1} << 40, int64_t{1} << 40}).ok());
  EXPECT_FALSE(graph.add_weight("w", PAVO_TYPE_F32, {-1, 4}).ok());
  EXPECT_FALSE(graph.add_weight("w", PAVO_TYPE_Q4_K, {4, 100}).ok());
  EXPECT_FALSE(graph.add_weight("w", 77, {4, 4}).ok());
  EXPECT_FALSE(graph.add_kv_pool("k", PAVO_TYPE_Q4_K, {1, 1, 64, 64}).ok());
  EXPECT_FALSE(graph.add_kv_pool("k", PAVO_TYPE_F16, {1, 1, 32, 64}).ok());
  EXPECT_FALSE(graph.add_step("s", Shape{}).ok());
}

TEST(Graph, ViewsShareStorage) {
  SmallGraph g;
  const TensorId view = must(g.graph.add_reshape(g.x, {3, 2, 32}));
  EXPECT_EQ(g.graph.storage(view), g.x);
  const TensorId columns = must(g.graph.add_columns(view, 8, 8));
  EXPECT_EQ(g.graph.storage(columns), g.x);
  EXPECT_EQ(g.graph.tensor(columns).view_offset, 32);
  EXPECT_EQ(g.graph.span_bytes(columns), (2 * 64 + 32 + 8) * 4);
  EXPECT_FALSE(g.graph.add_reshape(columns, {3, 16}).ok()) << "a gappy view is not contiguous";
  EXPECT_FALSE(g.graph.add_reshape(g.x, {3, 63}).ok());
  EXPECT_FALSE(g.graph.add_columns(g.x, 60, 5).ok());
}

TEST(Graph, KvPoolSpansItsPages) {
  Graph graph{Bucket{}};
  const TensorId dense = must(graph.add_kv_pool("k", PAVO_TYPE_F16, {3, 2, 64, 40}));
  EXPECT_EQ(graph.span_bytes(dense), 3 * 2 * 64 * 40 * 2);
  // q8_0, D = 40: two blocks a row: 64 quants and 2 f16 scales.
  const TensorId planar = must(graph.add_kv_pool("v", PAVO_TYPE_Q8_0, {3, 2, 64, 40}));
  EXPECT_EQ(graph.span_bytes(planar), 3 * 2 * (64 * 64 + 64 * 4));
}

TEST(GraphView, ListsOnlyWhatTheNodesUse) {
  SmallGraph g;
  ASSERT_TRUE(g.graph.add(pavo_op_matmul, "mm", {g.x, g.w}, pavo_matmul_params{}).ok());
  const uint32_t only[] = {1};
  const GraphView view(g.graph, only);
  ASSERT_EQ(view.get().node_count, 1u);
  EXPECT_EQ(view.get().tensor_count, 3u);
  EXPECT_EQ(view.tensors()[0], g.x);
  EXPECT_EQ(view.get().tensors[1]->type, PAVO_TYPE_Q4_1);
  EXPECT_EQ(view.get().nodes[0]->inputs[1], 1u);
  EXPECT_EQ(view.get().bucket->tokens, 3);
}

TEST(OpRules, EveryOpHasRules) {
  ASSERT_FALSE(all_ops().empty());
  for (const OpInfo& info : all_ops()) {
    EXPECT_EQ(find_op(info.id), &info);
    EXPECT_NE(info.rules.infer, nullptr);
    EXPECT_NE(info.rules.cost, nullptr);
  }
}

TEST(OpRules, MatmulCostIsItsBytesAndFlops) {
  SmallGraph g;
  ASSERT_TRUE(g.graph.add(pavo_op_matmul, "mm", {g.x, g.w}, pavo_matmul_params{}).ok());
  const IdealCost cost = ideal_cost(g.graph, g.graph.nodes()[1]);
  EXPECT_EQ(cost.flops, 2 * 3 * 5 * 64);
  EXPECT_EQ(cost.bytes, 3 * 64 * 4 + 5 * 40 + 3 * 5 * 4);  // q4_1: 20 bytes a block of 32
}

}  // namespace
}  // namespace pavo
