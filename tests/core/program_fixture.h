// A small program and the world that it runs in: a first device that may refuse ops, a CPU that
// takes everything. PAVO_TEST_BACKEND names the plugin of the first device, PAVO_TEST_OPTIONS its
// options
// ("key=value,key=value"), so that the same tests run on the mock device.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/backends.h"
#include "core/program.h"
#include "core/registry.h"

namespace pavo::test {

using Options = std::map<std::string, std::string>;

inline constexpr int32_t kVocabulary = 12;
inline constexpr int32_t kWidth = 32;

inline const Registry& registry() {
  static const Registry found = Registry::discover({});
  return found;
}

inline std::unique_ptr<Device> open_device(const std::string& plugin, const Options& options) {
  BackendRequest request;
  request.backend = plugin;
  request.plugin_options[plugin] = options;
  auto devices = open_devices(registry(), request);
  EXPECT_TRUE(devices.ok()) << devices.status().to_string();
  return devices.ok() ? std::move(devices->front()) : nullptr;
}

inline std::unique_ptr<Device> open_cpu(const std::string& refused) {
  return open_device("cpu", {{"reference", "1"}, {"threads", "1"}, {"refuse", refused}});
}

inline std::unique_ptr<Device> open_first(const std::string& refused) {
  const char* plugin = std::getenv("PAVO_TEST_BACKEND");
  if (plugin == nullptr) {
    return open_cpu(refused);
  }
  Options options = {{"refuse", refused}};
  const char* text = std::getenv("PAVO_TEST_OPTIONS");
  std::string rest = text == nullptr ? "" : text;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    const size_t equals = rest.find('=');
    options[rest.substr(0, equals)] = rest.substr(equals + 1, end - equals - 1);
    rest.erase(0, end + 1);
  }
  return open_device(plugin, options);
}

inline float table_value(int64_t row, int64_t column) {
  return static_cast<float>(std::sin(0.37 * static_cast<double>(row * kWidth + column)));
}

inline std::vector<float> make_values(int64_t rows, int64_t columns) {
  std::vector<float> values;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      values.push_back(table_value(r, c));
    }
  }
  return values;
}

// Devices, weights and pools of a test; the second device takes everything.
struct World {
  std::unique_ptr<Device> first;
  std::unique_ptr<Device> second;
  std::vector<float> table = make_values(kVocabulary, kWidth);
  std::unique_ptr<WeightStore> weights;
  ProgramContext context;

  explicit World(const std::string& refused) : World(open_first(refused)) {}
  explicit World(std::unique_ptr<Device> device) : first(std::move(device)), second(open_cpu("")) {
    const auto* data = reinterpret_cast<const std::byte*>(table.data());
    const auto bytes = static_cast<int64_t>(table.size() * sizeof(float));
    std::map<std::string, HostTensor> tensors;
    tensors["table"] = {"table", PAVO_TYPE_F32, {kVocabulary, kWidth}, data, bytes};
    weights = std::make_unique<WeightStore>(std::move(tensors));
    context.devices = {first.get(), second.get()};
    context.weights = weights.get();
  }
};

inline TensorId must(Result<TensorId> id) {
  EXPECT_TRUE(id.ok()) << id.status().to_string();
  return id.ok() ? *id : kNoTensor;
}

template <typename Params>
TensorId add(Graph& graph, int32_t op, const char* name, std::vector<TensorId> in, Params params) {
  auto out = graph.add(op, name, std::move(in), params);
  EXPECT_TRUE(out.ok()) << out.status().to_string();
  return out.ok() ? (*out)[0] : kNoTensor;
}

// out = table[ids] + glu(table[ids], table[ids] * table[ids]), through three ops in a row.
struct Chain {
  Graph graph{Bucket{3, 1, 3, 64}};
  TensorId ids, out;

  Chain() {
    const TensorId table = must(graph.add_weight("table", PAVO_TYPE_F32, {kVocabulary, kWidth}));
    ids = must(graph.add_step("ids", {3}));
    const TensorId x = add(graph, pavo_op_embed, "x", {table, ids}, pavo_embed_params{});
    pavo_binary_params mul = {};
    mul.kind = PAVO_BINARY_MUL;
    const TensorId square = add(graph, pavo_op_binary, "square", {x, x}, mul);
    pavo_glu_params glu = {};
    const TensorId gated = add(graph, pavo_op_glu, "gated", {x, square}, glu);
    out = add(graph, pavo_op_binary, "sum", {x, gated}, pavo_binary_params{});
  }
};

}  // namespace pavo::test
