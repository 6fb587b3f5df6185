// The kernel tables of the three plugins: what they accept with the profiles of real cards, and
// that every launch of an accepted node fits the chip. No GPU: the runtime is a fake, and launches
// of plan_create are dry.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include <toml++/toml.h>

#include "kernels/host/caps.h"
#include "kernels/host/device.h"
#include "kernels/host/plan.h"
#include "kernels/host/predicates.h"
#include "tests/kernels/decoder.h"
#include "tests/kernels/fake_plugin.h"

namespace pavo::cuda {

// Instantiated by nvcc; see kernels/host/plugin.cpp.
struct Sm60;
struct Sm61;
struct Sm70;
template <typename Arch>
ArchFacts arch_facts();
#define PAVO_KERNELS(family) \
  template <typename Arch>   \
  KernelList family##_kernels();
#include "plugins/cuda-sm60/kernels.inc"
#include "plugins/cuda-sm61/kernels.inc"
#include "plugins/cuda-sm70/kernels.inc"
#undef PAVO_KERNELS

namespace {

template <typename Arch>
PluginInfo make_info(std::string_view id, std::vector<KernelList> families) {
  return {id, "1", true, true, 12040, arch_facts<Arch>(), std::move(families)};
}

const std::vector<PluginInfo>& plugins() {
  static const std::vector<PluginInfo> kPlugins = {
#define PAVO_KERNELS(family) family##_kernels<Sm60>(),
      make_info<Sm60>(
          "cuda-sm60",
          {
#include "plugins/cuda-sm60/kernels.inc"
          }),
#undef PAVO_KERNELS
#define PAVO_KERNELS(family) family##_kernels<Sm61>(),
      make_info<Sm61>(
          "cuda-sm61",
          {
#include "plugins/cuda-sm61/kernels.inc"
          }),
#undef PAVO_KERNELS
#define PAVO_KERNELS(family) family##_kernels<Sm70>(),
      make_info<Sm70>(
          "cuda-sm70",
          {
#include "plugins/cuda-sm70/kernels.inc"
          }),
#undef PAVO_KERNELS
  };
  return kPlugins;
}

struct Node {
  std::string text;
  pavo_verdict verdict;
};

std::vector<Node> ask(
    const PluginInfo& info, const Options& options, const pavo_values* caps, GraphBuilder& b) {
  std::vector<pavo_verdict> verdicts(b.node_count());
  std::vector<pavo_verdict*> pointers;
  for (pavo_verdict& verdict : verdicts) {
    verdict.struct_size = sizeof verdict;
    pointers.push_back(&verdict);
  }
  pavo_error error = make_error();
  EXPECT_EQ(query_nodes(info, options, caps, b.graph(), pointers.data(), &error), PAVO_OK)
      << text_of(error);
  std::vector<Node> nodes;
  for (uint32_t i = 0; i < b.node_count(); ++i) {
    const std::string op = op_name(b.node_at(i).op);
    nodes.push_back(
        {std::string(info.id) + " " + op + " " + verdicts[i].variant + ": " + verdicts[i].text,
         verdicts[i]});
  }
  return nodes;
}

// Adds a profile's keys to `list`.
void load_profile(const std::filesystem::path& file, CapsList* list) {
  for (const auto& [key, value] : toml::parse_file(file.string())) {
    const std::string name(key.str());
    if (value.is_integer()) {
      list->add(name, value.as_integer()->get());
    } else if (value.is_floating_point()) {
      list->add(name, value.as_floating_point()->get());
    } else {
      list->add(name, std::string_view(value.as_string()->get()));
    }
  }
}

std::vector<std::filesystem::path> profiles(const PluginInfo& info) {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder =
      std::filesystem::path(PAVO_PLUGINS_DIR) / info.id / "profiles";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  return files;
}

TEST(TablesTest, ProfilesDescribeThePluginsOwnChip) {
  for (const PluginInfo& info : plugins()) {
    EXPECT_GE(profiles(info).size(), 2u) << info.id;
    for (const auto& file : profiles(info)) {
      CapsList list;
      load_profile(file, &list);
      Caps caps;
      pavo_error error = make_error();
      ASSERT_EQ(read_caps(info, &list.values(), &caps, &error), PAVO_OK) << text_of(error);
      EXPECT_EQ(caps.compute_capability, info.facts.compute_capability) << file;
      EXPECT_EQ(caps.shared_bytes_per_block, info.facts.shared_bytes_per_block) << file;
      EXPECT_GT(caps.bandwidth_bytes_per_s, 1e11) << file;
      EXPECT_EQ(list.values().count, 9u) << file << ": a key is missing or unknown";
    }
  }
}

// Nothing that a Llama-like decoder asks is refused by any of the three.
TEST(TablesTest, AcceptsADecoderLayerOnEveryCard) {
  for (const PluginInfo& info : plugins()) {
    for (const auto& file : profiles(info)) {
      CapsList caps;
      load_profile(file, &caps);
      for (const Model& model : models()) {
        for (const int64_t tokens : {1, 7, 512}) {
          GraphBuilder builder;
          add_layer(builder, model, tokens);
          for (const Node& node : ask(info, {}, &caps.values(), builder)) {
            EXPECT_NE(node.verdict.decision, PAVO_REFUSE)
                << node.text << " (" << pavo_type_name(model.weight_type) << ", T " << tokens
                << ")";
            EXPECT_GT(node.verdict.est_ns, 0) << node.text;
          }
        }
      }
    }
  }
}

TEST(TablesTest, RefusalsHaveAReason) {
  GraphBuilder builder;
  add_layer(builder, models()[0], 1);
  for (const PluginInfo& info : plugins()) {
    CapsList maxwell;
    maxwell.add(PAVO_CAP_COMPUTE_CAPABILITY, int64_t{52});
    for (const Node& node : ask(info, {}, &maxwell.values(), builder)) {
      EXPECT_EQ(node.verdict.decision, PAVO_REFUSE) << node.text;
      EXPECT_EQ(node.verdict.reason, PAVO_REASON_DEVICE_FEATURE) << node.text;
      EXPECT_EQ(node.verdict.actual, 52) << node.text;
    }
    Options options;
    options.refused = {pavo_op_attention};
    const std::vector<Node> nodes = ask(info, options, nullptr, builder);
    const auto refused = std::count_if(nodes.begin(), nodes.end(), [](const Node& node) {
      return node.verdict.reason == PAVO_REASON_POLICY;
    });
    EXPECT_EQ(refused, 1) << info.id;
  }
}

// Broken nodes are refused with a reason, one by one, and hurt no other.
TEST(TablesTest, BrokenNodesAreRefused) {
  const auto broken = [](const std::function<void(GraphBuilder&)>& breaking) {
    GraphBuilder b;
    add_layer(b, models()[0], 2);
    breaking(b);
    std::vector<int32_t> reasons;
    for (const Node& node : ask(plugins()[1], {}, nullptr, b)) {
      EXPECT_EQ(node.verdict.reason == PAVO_REASON_NONE, node.verdict.decision != PAVO_REFUSE)
          << node.text;
      reasons.push_back(node.verdict.reason);
    }
    EXPECT_EQ(reasons[0], PAVO_REASON_NONE) << "the first node was not touched";
    return reasons[1];  // the norm
  };
  uint32_t wild = 1u << 30;
  int unknown = 0;
  EXPECT_EQ(broken([](auto& b) { b.node_at(1).op = 999; }), PAVO_REASON_OP);
  EXPECT_EQ(broken([](auto& b) { b.node_at(1).params = nullptr; }), PAVO_REASON_PARAM);
  EXPECT_EQ(
      broken([&](auto& b) {
        b.node_at(1).inputs = &wild;
        b.node_at(1).input_count = 1;
      }),
      PAVO_REASON_OPERAND);
  EXPECT_EQ(broken([&](auto& b) { b.node_at(1).input_count = 0; }), PAVO_REASON_OPERAND);
  EXPECT_EQ(broken([&](auto& b) { b.node_at(1).params = &(unknown = 4); }), PAVO_REASON_NONE)
      << "a host that knows no field yet: all are 0";
  const auto with_y = [&](const std::function<void(pavo_tensor&)>& change) {
    return broken([&](auto& b) {
      const uint32_t y = b.node_at(1).outputs[0];
      pavo_tensor saved = b.at(y);
      const uint32_t copy = b.activation({1});
      b.at(copy) = saved;
      change(b.at(copy));
      static uint32_t output;
      output = copy;
      b.node_at(1).outputs = &output;
    });
  };
  EXPECT_EQ(with_y([](auto& t) { t.shape[0] = -1; }), PAVO_REASON_SHAPE_RANGE);
  EXPECT_EQ(with_y([](auto& t) { t.shape[0] = INT64_MAX; }), PAVO_REASON_SHAPE_RANGE);
  const auto wider = [](auto& t) {
    t.shape[1] += 4;
    t.stride[0] += 16;
  };
  EXPECT_EQ(with_y(wider), PAVO_REASON_SHAPE_MISMATCH);
  EXPECT_EQ(with_y([](auto& t) { t.stride[1] = 8; }), PAVO_REASON_STRIDE);
  EXPECT_EQ(with_y([](auto& t) { t.stride[0] = 8; }), PAVO_REASON_STRIDE);
  EXPECT_EQ(with_y([](auto& t) { t.type = PAVO_TYPE_F16; }), PAVO_REASON_TYPE);
  EXPECT_EQ(with_y([](auto& t) { t.role = 77; }), PAVO_REASON_ROLE);
  EXPECT_EQ(with_y([](auto& t) { t.rank = 5; }), PAVO_REASON_SHAPE_RANGE);
}

// Launches the node's kernel with operands at `address`; the fake runtime keeps the sizes.
void launch_once(
    const pavo_device& device,
    const Kernel& kernel,
    const pavo_graph& graph,
    uintptr_t address,
    const std::string& text) {
  pavo_error error = make_error();
  GraphCopy copy;
  ASSERT_EQ(copy.init(&graph, &error), PAVO_OK) << text_of(error);
  const std::vector<std::byte*> data(
      graph.tensor_count, reinterpret_cast<std::byte*>(address));  // nobody reads there
  Launcher launcher(device.compute(), device.caps().shared_bytes_per_block);
  const NodeQuery query = {device.caps(), copy.graph(), copy.node(0)};
  EXPECT_EQ(kernel.launch({query, data.data(), data.back(), launcher}), cudaSuccess) << text;
  EXPECT_GT(launcher.launches(), 0) << text;
}

// The node alone, on a device of the plugin's kind.
void expect_fits(
    pavo_device* device,
    const Kernel& kernel,
    GraphBuilder& b,
    uint32_t index,
    const std::string& text) {
  pavo_graph graph = *b.graph();
  const pavo_node* node = graph.nodes[index];
  graph.nodes = &node;
  graph.node_count = 1;
  pavo_error error = make_error();
  pavo_plan plan(device);
  EXPECT_EQ(plan.init(&graph, &error), PAVO_OK) << text << ": " << text_of(error);
  launch_once(*device, kernel, graph, 0x10000, text);
  launch_once(*device, kernel, graph, 0x10004, text);  // what needs aligned rows has a second way
}

// How many nodes of decoders the kernel accepts; each of them must fit the chip.
int64_t count_fitting(const PluginInfo& info, const Kernel& kernel) {
  Options options;
  options.forced = {{kernel.op, kernel.name}};
  pavo_plugin plugin(info, *fake_host(), options);
  pavo_device device(plugin, plugin.devices().front());
  pavo_error error = make_error();
  EXPECT_EQ(device.init(&error), PAVO_OK) << text_of(error);
  int64_t accepted = 0;
  for (const Model& model : models()) {
    for (const int64_t tokens : {1, 2, 4, 8, 33, 512}) {
      GraphBuilder b;
      add_layer(b, model, tokens);
      add_others(b, model, tokens);
      const std::vector<Node> nodes =
          ask(info, options, &plugin.devices().front().list.values(), b);
      for (uint32_t i = 0; i < b.node_count(); ++i) {
        if (b.node_at(i).op == kernel.op && nodes[i].verdict.decision != PAVO_REFUSE) {
          EXPECT_EQ(nodes[i].verdict.variant, std::string_view(kernel.name));
          expect_fits(&device, kernel, b, i, nodes[i].text);
          ++accepted;
        }
      }
    }
  }
  return accepted;
}

// Largest launch of each kernel, for limits_test.py, which knows what each one was compiled to.
void write_launches(const char* path) {
  std::ofstream file(path);
  for (const fakes::CompiledKernel& kernel : fakes::cudart::compiled_kernels()) {
    file << kernel.name << ' ' << kernel.threads << ' ' << kernel.dynamic_shared << '\n';
  }
  EXPECT_TRUE(file.good()) << path;
}

// Every launch of every variant fits the chip, although the card at hand (the fake has 227 KB of
// shared memory) would allow more.
TEST(TablesTest, EveryVariantFitsTheChip) {
  for (const PluginInfo& info : plugins()) {
    const int32_t capability = info.facts.compute_capability;
    fakes::cudart::reset({{capability / 10, capability % 10}});
    for (const KernelList& family : info.families) {
      for (const Kernel& kernel : family) {
        EXPECT_GT(count_fitting(info, kernel), 0)
            << info.id << ": " << kernel.name << " accepts no node here; add one that it takes";
      }
    }
  }
  if (const char* path = std::getenv("PAVO_TEST_LAUNCHES_FILE")) {
    write_launches(path);
  }
}

TEST(TablesTest, NamesAreUniqueAndBeginWithTheOp) {
  for (const PluginInfo& info : plugins()) {
    std::vector<std::string> names;
    for (const KernelList& family : info.families) {
      for (const Kernel& kernel : family) {
        names.emplace_back(kernel.name);
        EXPECT_EQ(names.back().rfind(op_name(kernel.op), 0), 0u) << kernel.name;
      }
    }
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << info.id;
  }
}

}  // namespace
}  // namespace pavo::cuda
