// Nodes in simpler ops: they say the same, and a device that refuses the fused form runs them.
#include "core/device_lowering.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/plugin_options.h"
#include "core/simpler_ops.h"
#include "tests/core/program_fixture.h"
#include "tests/core/temp_dir.h"

namespace pavo {
namespace {

using namespace test;  // NOLINT(google-build-using-namespace): the fixture of this file

std::unique_ptr<Device> open_mock(const Options& options) {
  const auto path = test::fake("mock");
  const LoadedPlugin* plugin = *load_plugin(path, *read_plugin_file(path));
  auto values = convert_options(plugin->api, options);
  EXPECT_TRUE(values.ok()) << values.status().message();
  auto instance = PluginInstance::create(plugin->api, std::move(values).value());
  EXPECT_TRUE(instance.ok()) << instance.status().message();
  return std::move(Device::open(*instance, "mock-0")).value();
}

struct Form {
  pavo_norm_params params = {};
  bool weight = false;
  bool bias = false;
  bool residual = false;
};

// Norms of embeddings: weight, bias and residual are vectors and rows of the table.
struct Norm {
  Graph graph{Bucket{3, 1, 3, 64}};
  TensorId ids, other_ids, y, sum = kNoTensor;

  explicit Norm(const Form& form) {
    const TensorId table = must(graph.add_weight("table", PAVO_TYPE_F32, {kVocabulary, kWidth}));
    const TensorId vector = must(graph.add_weight("vector", PAVO_TYPE_F32, {kWidth}));
    ids = must(graph.add_step("ids", {3}));
    other_ids = must(graph.add_step("other_ids", {3}));
    const TensorId x = add(graph, pavo_op_embed, "x", {table, ids}, pavo_embed_params{});
    const TensorId r = add(graph, pavo_op_embed, "r", {table, other_ids}, pavo_embed_params{});
    const uint32_t outputs = form.residual ? 2 : 1;
    auto out = graph.add(
        pavo_op_norm,
        "norm",
        {x,
         form.weight ? vector : kNoTensor,
         form.bias ? vector : kNoTensor,
         form.residual ? r : kNoTensor},
        form.params,
        outputs);
    EXPECT_TRUE(out.ok()) << out.status().message();
    y = (*out)[0];
    sum = form.residual ? (*out)[1] : kNoTensor;
    // Somebody reads them, under the ids that they have now.
    y = add(graph, pavo_op_binary, "after", {y, form.residual ? sum : x}, pavo_binary_params{});
  }
};

double vector_value(int64_t i) {
  return table_value(0, i) + 0.5;
}

// after = norm + (x + residual), from the formula of ops.inc.
std::vector<double> expected_row(const Form& form, int64_t id, int64_t other_id) {
  std::vector<double> s;
  double mean = 0;
  for (int64_t i = 0; i < kWidth; ++i) {
    const double r = form.residual ? static_cast<double>(table_value(other_id, i)) : 0;
    s.push_back(static_cast<double>(table_value(id, i)) + r);
    mean += s.back() / kWidth;
  }
  mean = form.params.kind == PAVO_NORM_LAYER ? mean : 0;
  double squares = 0;
  for (const double value : s) {
    squares += (value - mean) * (value - mean);
  }
  const auto eps = static_cast<double>(form.params.eps);
  const double scale = form.params.kind == PAVO_NORM_L2 ? std::max(std::sqrt(squares), eps)
                                                        : std::sqrt(squares / kWidth + eps);
  std::vector<double> out;
  for (int64_t i = 0; i < kWidth; ++i) {
    const double w = form.weight ? vector_value(i) : 1;
    const double offset = form.weight ? static_cast<double>(form.params.weight_offset) : 0;
    const double b = form.bias ? vector_value(i) : 0;
    const double value = s[static_cast<size_t>(i)];
    out.push_back((value - mean) / scale * (w + offset) + b + value);
  }
  return out;
}

// The first device alone, with the vector among the weights.
struct Alone : World {
  explicit Alone(std::unique_ptr<Device> device) : World(std::move(device)) {
    for (int64_t i = 0; i < kWidth; ++i) {
      vector.push_back(static_cast<float>(vector_value(i)));
    }
    const auto host = [](const char* name, Shape shape, const std::vector<float>& values) {
      return HostTensor{
          name,
          PAVO_TYPE_F32,
          shape,
          reinterpret_cast<const std::byte*>(values.data()),
          static_cast<int64_t>(values.size() * sizeof(float))};
    };
    std::map<std::string, HostTensor> tensors;
    tensors["table"] = host("table", {kVocabulary, kWidth}, table);
    tensors["vector"] = host("vector", {kWidth}, vector);
    weights = std::make_unique<WeightStore>(std::move(tensors));
    context.weights = weights.get();
    context.devices = {first.get()};
  }
  std::vector<float> vector;
};

void expect_norm(World& world, const Form& form) {
  Norm norm(form);
  auto program = Program::create(std::move(norm.graph), {norm.y}, {}, world.context);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_EQ((*program)->placement().lowered.empty(), !form.weight && !form.bias && !form.residual);
  const std::vector<int32_t> ids = {7, 2, 11};
  const std::vector<int32_t> other_ids = {3, 3, 8};
  ASSERT_TRUE((*program)->set_step(norm.ids, ids).ok());
  if (form.residual) {
    ASSERT_TRUE((*program)->set_step(norm.other_ids, other_ids).ok());
  } else {
    ASSERT_TRUE((*program)->set_step(norm.other_ids, ids).ok());
  }
  ASSERT_TRUE((*program)->run().ok());
  std::vector<float> out(3 * kWidth);
  ASSERT_TRUE((*program)->read_output(norm.y, 0, out).ok());
  for (size_t row = 0; row < ids.size(); ++row) {
    const std::vector<double> expected = expected_row(form, ids[row], other_ids[row]);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(out[row * kWidth + i], expected[i], 2e-6) << "row " << row << ", " << i;
    }
  }
}

TEST(DeviceLowering, NormsSayTheSameInSimplerOps) {
  Alone world(open_mock({{"refuse", "norm:inputs>1"}}));
  for (const int32_t kind : {PAVO_NORM_RMS, PAVO_NORM_LAYER, PAVO_NORM_L2}) {
    for (int bits = 0; bits < 16; ++bits) {
      SCOPED_TRACE("kind " + std::to_string(kind) + ", form " + std::to_string(bits));
      Form form;
      form.params.kind = kind;
      form.params.eps = 1e-5F;
      form.weight = (bits & 1) != 0;
      form.bias = (bits & 2) != 0;
      form.residual = (bits & 4) != 0;
      form.params.weight_offset = (bits & 8) != 0 && form.weight ? 1.0F : 0.0F;
      expect_norm(world, form);
    }
  }
}

// y = x * table^T + bias, and silu of its first half times the second.
TEST(DeviceLowering, MatmulAndGluSayTheSameInSimplerOps) {
  Alone world(open_mock({{"refuse", "matmul:inputs>2,glu:inputs=1"}}));
  Graph graph(Bucket{1, 1, 1, 64});
  const TensorId table = must(graph.add_weight("table", PAVO_TYPE_F32, {kVocabulary, kWidth}));
  const TensorId bias = must(graph.add_weight("bias", PAVO_TYPE_F32, {kVocabulary}));
  const TensorId ids = must(graph.add_step("ids", {1}));
  const TensorId x = add(graph, pavo_op_embed, "x", {table, ids}, pavo_embed_params{});
  const TensorId y = add(graph, pavo_op_matmul, "y", {x, table, bias}, pavo_matmul_params{});
  const TensorId out = add(graph, pavo_op_glu, "out", {y}, pavo_glu_params{});
  const std::vector<float> biases = make_values(1, kVocabulary);
  const auto* data = reinterpret_cast<const std::byte*>(biases.data());
  std::map<std::string, HostTensor> tensors;
  tensors["bias"] = {"bias", PAVO_TYPE_F32, {kVocabulary}, data, kVocabulary * 4};
  tensors["table"] = {
      "table",
      PAVO_TYPE_F32,
      {kVocabulary, kWidth},
      reinterpret_cast<const std::byte*>(world.table.data()),
      kVocabulary * kWidth * 4};
  world.weights = std::make_unique<WeightStore>(std::move(tensors));
  world.context.weights = world.weights.get();
  auto program = Program::create(std::move(graph), {out}, {}, world.context);
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_TRUE((*program)->set_step(ids, std::vector<int32_t>{5}).ok());
  ASSERT_TRUE((*program)->run().ok());
  std::vector<float> got(kVocabulary / 2);
  ASSERT_TRUE((*program)->read_output(out, 0, got).ok());
  std::vector<double> product;
  for (int64_t n = 0; n < kVocabulary; ++n) {
    product.push_back(static_cast<double>(table_value(0, n)));
    for (int64_t i = 0; i < kWidth; ++i) {
      product.back() += static_cast<double>(table_value(5, i)) * table_value(n, i);
    }
  }
  for (size_t n = 0; n < got.size(); ++n) {
    const double expected = product[n] / (1 + std::exp(-product[n])) * product[n + got.size()];
    EXPECT_NEAR(got[n], expected, 1e-4 * (1 + std::fabs(expected))) << n;
  }
  const auto summary =
      summarize((*program)->graph(), (*program)->placement(), world.context.devices);
  ASSERT_EQ(summary.lowered.size(), 2u);
  EXPECT_TRUE(summary.refusals.empty());
  EXPECT_NE(to_line(summary).find("1 x matmul in simpler ops on mock-0 ("), std::string::npos)
      << to_line(summary);
}

// What does not help is not done: the node goes as it is to the device that takes it.
TEST(DeviceLowering, LeavesNodesWholeWhosePartsAreRefusedToo) {
  Alone world(open_mock({{"refuse", "norm:inputs>1,binary"}}));
  world.context.devices = {world.first.get(), world.second.get()};
  Form form;
  form.residual = true;
  form.params.eps = 1e-5F;
  Norm norm(form);
  const size_t nodes = norm.graph.nodes().size();
  auto program = Program::create(std::move(norm.graph), {norm.y}, {}, world.context);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE((*program)->placement().lowered.empty());
  EXPECT_EQ((*program)->graph().nodes().size(), nodes);
}

TEST(DeviceLowering, KeepsToTheDeviceOfARule) {
  Alone world(open_mock({{"refuse", "norm:inputs>1"}}));
  world.context.devices = {world.first.get(), world.second.get()};
  Form form;
  form.residual = true;
  Norm norm(form);
  PlacementOptions options;
  options.rules = {*parse_place_rule("norm=cpu")};
  auto program = Program::create(std::move(norm.graph), {norm.y}, options, world.context);
  ASSERT_TRUE(program.ok()) << program.status().message();
  EXPECT_TRUE((*program)->placement().lowered.empty());
  Norm pinned(form);
  options.rules = {*parse_place_rule("norm=mock-0")};
  program = Program::create(std::move(pinned.graph), {pinned.y}, options, world.context);
  ASSERT_TRUE(program.ok()) << program.status().message();
  ASSERT_EQ((*program)->placement().lowered.size(), 1u);
  EXPECT_EQ((*program)->placement().lowered[0].device, "mock-0");
}

}  // namespace
}  // namespace pavo
