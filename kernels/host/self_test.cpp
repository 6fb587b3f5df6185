#include "kernels/host/self_test.h"

#include <memory>
#include <vector>

#include "pavo/plugin_helpers.h"

#include "kernels/host/copy.h"
#include "kernels/host/device.h"
#include "kernels/host/error.h"
#include "kernels/host/plan.h"
#include "kernels/host/timeline.h"

namespace pavo::cuda {
namespace {

constexpr int64_t kCount = 1023;                      // odd, so that the generic kernel runs
constexpr int64_t kPitch = 4096;                      // bytes from operand to operand in the buffer
constexpr int32_t kRuns = 3;                          // direct, captured, replayed
constexpr int64_t kTimeoutNs = INT64_C(30000000000);  // PTX may have to be compiled

struct BufferCloser {
  void operator()(pavo_buffer* buffer) const { buffer->device->buffer_destroy(buffer); }
};
using Buffer = std::unique_ptr<pavo_buffer, BufferCloser>;

int32_t make_buffer(pavo_device* device, int64_t bytes, Buffer* out, pavo_error* error) {
  pavo_buffer* buffer = nullptr;
  PAVO_TRY(device->buffer_create(bytes, PAVO_MEMORY_DEVICE, &buffer, error));
  out->reset(buffer);
  return PAVO_OK;
}

// c = a + b, then d = c + b: two launches, so that a graph pays.
struct Sum {
  pavo_binary_params params = {sizeof(pavo_binary_params), PAVO_BINARY_ADD};
  pavo_tensor tensor = {};
  const pavo_tensor* tensors[4] = {&tensor, &tensor, &tensor, &tensor};
  uint32_t first_inputs[2] = {0, 1};
  uint32_t second_inputs[2] = {2, 1};
  uint32_t outputs[2] = {2, 3};
  pavo_node nodes[2] = {};
  const pavo_node* node_list[2] = {&nodes[0], &nodes[1]};
  pavo_bucket bucket = {sizeof(pavo_bucket), 1, 1, 0, 0};
  pavo_graph graph = {};

  Sum() {
    tensor.struct_size = sizeof tensor;
    tensor.type = PAVO_TYPE_F32;
    tensor.role = PAVO_ROLE_ACTIVATION;
    tensor.rank = 1;
    tensor.shape[0] = kCount;
    tensor.stride[0] = 4;
    for (uint64_t i = 0; i < 2; ++i) {
      nodes[i] = {sizeof(pavo_node), pavo_op_binary, i, 2, 1, nullptr, nullptr, &params, {}};
      nodes[i].name = sdk::string("self test");
      nodes[i].inputs = i == 0 ? first_inputs : second_inputs;
      nodes[i].outputs = &outputs[i];
    }
    graph = {sizeof graph, 4, tensors, 2, 0, node_list, &bucket};
  }
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;
};

// Small whole numbers: every sum is exact.
float operand(int64_t operand_index, int64_t i) {
  return static_cast<float>((operand_index + 1) * i % 1000);
}

int32_t compare(const std::vector<float>& got, pavo_error* error) {
  for (int64_t i = 0; i < kCount; ++i) {
    const float expected = operand(0, i) + 2.0f * operand(1, i);
    if (const float value = got[static_cast<size_t>(i)]; value != expected) {
      return sdk::fail(
          error,
          PAVO_ERROR_NODE_FAILED,
          "self test: expected element %lld of a sum to be %g, got %g",
          static_cast<long long>(i),
          static_cast<double>(expected),
          static_cast<double>(value));
    }
  }
  return PAVO_OK;
}

int32_t test_sums(pavo_device* device, pavo_error* error) {
  const Sum sum;
  pavo_timeline timeline(device);
  pavo_plan plan(device);
  PAVO_TRY(plan.init(&sum.graph, error));
  Buffer buffer;  // four operands, then the workspace
  PAVO_TRY(make_buffer(device, 4 * kPitch + plan.workspace_bytes(), &buffer, error));

  std::vector<float> host(2 * kPitch / sizeof(float));
  for (int64_t i = 0; i < kCount; ++i) {
    host[static_cast<size_t>(i)] = operand(0, i);
    host[kPitch / sizeof(float) + static_cast<size_t>(i)] = operand(1, i);
  }
  pavo_copy_region in = {};
  in.src_host = host.data();
  in.dst = buffer.get();
  in.row_bytes = 4 * kCount;
  in.rows = 2;
  in.src_pitch = in.dst_pitch = kPitch;
  pavo_fence fence = {&timeline, 1};
  PAVO_TRY(copy_regions(device, &in, 1, {nullptr, 0, &fence, 1}, error));

  pavo_binding bindings[4];
  for (int64_t i = 0; i < 4; ++i) {
    bindings[i] = {buffer.get(), i * kPitch};
  }
  for (int32_t run = 0; run < kRuns; ++run) {
    const pavo_fence next = {&timeline, fence.value + 1};
    const pavo_submit submit = {
        sizeof submit, 4, bindings, {buffer.get(), 4 * kPitch}, &fence, &next, 1, 1};
    PAVO_TRY(plan.submit(submit, error));
    fence = next;
  }
  std::vector<float> got(static_cast<size_t>(kCount));
  pavo_copy_region out = {};
  out.src = buffer.get();
  out.src_offset = 3 * kPitch;
  out.dst_host = got.data();
  out.row_bytes = 4 * kCount;
  out.rows = 1;
  const pavo_fence last = {&timeline, fence.value + 1};
  PAVO_TRY(copy_regions(device, &out, 1, {&fence, 1, &last, 1}, error));
  for (uint64_t value = 1; value <= last.value; ++value) {  // each failure is told once
    PAVO_TRY(timeline.wait(value, kTimeoutNs, error));
  }
  return compare(got, error);
}

// 8 x 8 of ones: every element is 8.
int32_t test_cublas(pavo_device* device, Cublas* cublas, pavo_error* error) {
  constexpr int64_t kSize = 8;
  constexpr uint16_t kOne = 0x3c00;
  const std::vector<uint16_t> ones(kSize * kSize, kOne);
  std::vector<float> got(kSize * kSize);
  Buffer buffer;
  PAVO_TRY(make_buffer(device, 2 * kPitch, &buffer, error));
  std::byte* x = buffer->data;
  auto* out = reinterpret_cast<float*>(buffer->data + kPitch);
  const cudaStream_t stream = device->compute();
  PAVO_CUDA_TRY(cudaMemcpyAsync(x, ones.data(), 2 * ones.size(), cudaMemcpyDefault, stream));
  PAVO_TRY(cublas->matmul_f16(kSize, kSize, kSize, x, kSize, x, kSize, out, kSize, error));
  PAVO_CUDA_TRY(cudaMemcpyAsync(got.data(), out, 4 * got.size(), cudaMemcpyDefault, stream));
  PAVO_CUDA_TRY(cudaStreamSynchronize(stream));
  for (const float value : got) {
    if (value != static_cast<float>(kSize)) {
      return sdk::fail(
          error,
          PAVO_ERROR_NODE_FAILED,
          "self test: expected 8 of a cuBLAS product, got %g",
          static_cast<double>(value));
    }
  }
  return PAVO_OK;
}

}  // namespace

int32_t self_test(pavo_device* device, pavo_error* error) {
  PAVO_TRY(test_sums(device, error));
  Cublas* cublas = device->cublas();
  return cublas == nullptr ? PAVO_OK : test_cublas(device, cublas, error);
}

}  // namespace pavo::cuda
