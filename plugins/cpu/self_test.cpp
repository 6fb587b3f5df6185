#include <cstring>

#include "pavo/plugin_helpers.h"

#include "plugins/cpu/device.h"
#include "plugins/cpu/plan.h"

namespace pavo::cpu {
namespace {

constexpr int64_t kRows = 2;
constexpr int64_t kColumns = 3;
constexpr int64_t kDepth = 32;

// x[t,k] = t + 1, w[n,k] = k - n: small integers, so every product and sum is exact in f32.
constexpr float expected(int64_t t, int64_t n) {
  return static_cast<float>((t + 1) * (kDepth * (kDepth - 1) / 2 - kDepth * n));
}

pavo_tensor tensor(int32_t role, int64_t rows, int64_t columns) {
  pavo_tensor result{};
  result.struct_size = sizeof result;
  result.type = PAVO_TYPE_F32;
  result.role = role;
  result.rank = 2;
  result.shape[0] = rows;
  result.shape[1] = columns;
  if (role == PAVO_ROLE_WEIGHT) {
    result.uses = PAVO_USE_MATMUL;
  } else {
    result.stride[0] = columns * 4;
    result.stride[1] = 4;
  }
  return result;
}

// Runs x * w^T through a plan of its own; memory lies on the stack.
struct Trial {
  pavo_tensor x = tensor(PAVO_ROLE_ACTIVATION, kRows, kDepth);
  pavo_tensor w = tensor(PAVO_ROLE_WEIGHT, kColumns, kDepth);
  pavo_tensor y = tensor(PAVO_ROLE_ACTIVATION, kRows, kColumns);
  alignas(64) float x_data[kRows * kDepth];
  alignas(64) float w_data[kColumns * kDepth];
  alignas(64) float y_data[kRows * kColumns];

  Trial() {
    for (int64_t i = 0; i < kRows * kDepth; ++i) {
      x_data[i] = static_cast<float>(i / kDepth + 1);
    }
    for (int64_t i = 0; i < kColumns * kDepth; ++i) {
      w_data[i] = static_cast<float>(i % kDepth - i / kDepth);
    }
    std::memset(y_data, 0xff, sizeof y_data);  // NaN
  }

  int32_t run(pavo_device* device, pavo_error* error);
};

int32_t Trial::run(pavo_device* device, pavo_error* error) {
  pavo_matmul_params params{};
  params.struct_size = sizeof params;
  params.precision = PAVO_PRECISION_EXACT;
  const uint32_t inputs[] = {0, 1};
  const uint32_t outputs[] = {2};
  pavo_node node{};
  node.struct_size = sizeof node;
  node.op = pavo_op_matmul;
  node.input_count = 2;
  node.output_count = 1;
  node.inputs = inputs;
  node.outputs = outputs;
  node.params = &params;
  node.name = sdk::string("self_test");
  pavo_bucket bucket{};
  bucket.struct_size = sizeof bucket;
  bucket.tokens = kRows;
  bucket.sequences = 1;
  const pavo_tensor* const tensors[] = {&x, &w, &y};
  const pavo_node* const nodes[] = {&node};
  const pavo_graph graph = {sizeof graph, 3, tensors, 1, 0, nodes, &bucket};

  pavo_plan plan(device);
  const int32_t code = plan.init(&graph, error);
  if (code != PAVO_OK) {
    return code;
  }
  pavo_buffer* workspace = nullptr;
  if (device->buffer_create(plan.workspace_bytes(), &workspace, error) != PAVO_OK) {
    return PAVO_ERROR_OUT_OF_MEMORY;
  }
  const auto wrap = [device](float* data, size_t size) {
    return pavo_buffer{
        device, reinterpret_cast<std::byte*>(data), static_cast<int64_t>(size), false};
  };
  pavo_buffer buffers[] = {
      wrap(x_data, sizeof x_data), wrap(w_data, sizeof w_data), wrap(y_data, sizeof y_data)};
  const pavo_binding bindings[] = {{&buffers[0], 0}, {&buffers[1], 0}, {&buffers[2], 0}};
  pavo_submit submit{};
  submit.struct_size = sizeof submit;
  submit.binding_count = 3;
  submit.bindings = bindings;
  submit.workspace = {workspace, 0};
  const int32_t result = plan.submit(submit, error);
  device->buffer_destroy(workspace);
  return result;
}

}  // namespace

int32_t self_test(pavo_device* device, pavo_error* error) {
  Trial trial;
  const int32_t code = trial.run(device, error);
  for (int64_t i = 0; code == PAVO_OK && i < kRows * kColumns; ++i) {
    const float wanted = expected(i / kColumns, i % kColumns);
    if (trial.y_data[i] != wanted) {
      return sdk::fail(
          error,
          PAVO_ERROR_NODE_FAILED,
          "self-test: value %d of a matmul is %g, expected %g",
          static_cast<int>(i),
          static_cast<double>(trial.y_data[i]),
          static_cast<double>(wanted));
    }
  }
  return code;
}

}  // namespace pavo::cpu
