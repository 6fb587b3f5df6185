#include "tests/kernels/ops/node_fixture.h"

#include <algorithm>
#include <limits>

#include "kernels/common/checks.h"
#include "kernels/common/weight_layout.h"
#include "kernels/host/packing.h"
#include "plugins/cpu/dequantize.h"
#include "tests/kernels/ops/emulator/emulator.h"

namespace pavo::cuda::testing {
namespace {

// Where a block of the file has its half-precision numbers.
std::vector<size_t> file_halves(int32_t type) {
  switch (type) {
    case PAVO_TYPE_Q4_0:
    case PAVO_TYPE_Q8_0:
      return {0};
    case PAVO_TYPE_Q4_1:
    case PAVO_TYPE_Q4_K:
      return {0, 2};
    case PAVO_TYPE_Q6_K:
      return {offsetof(pavo_block_q6_k, d)};
    default:
      return {};
  }
}

std::byte* element(const pavo_tensor& tensor, std::byte* base, int64_t index) {
  int64_t offset = 0;
  for (int32_t i = tensor.rank - 1; i >= 0; --i) {
    offset += index % tensor.shape[i] * tensor.stride[i];
    index /= tensor.shape[i];
  }
  return base + offset;
}

pavo_tensor make_tensor(
    int32_t type, int32_t role, const std::vector<int64_t>& shape, int64_t gap) {
  pavo_tensor tensor{};
  tensor.struct_size = sizeof tensor;
  tensor.type = type;
  tensor.role = role;
  tensor.rank = static_cast<int32_t>(shape.size());
  std::copy(shape.begin(), shape.end(), tensor.shape);
  int64_t stride = 4;
  for (int32_t i = tensor.rank - 1; i >= 0 && role != PAVO_ROLE_WEIGHT; --i) {
    tensor.stride[i] = stride;
    stride *= tensor.shape[i];
    stride += i == tensor.rank - 1 ? 4 * gap : 0;
  }
  return tensor;
}

int64_t span_bytes(const pavo_tensor& tensor) {
  int64_t last = 4;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    if (tensor.shape[i] == 0) {
      return 0;
    }
    last += (tensor.shape[i] - 1) * tensor.stride[i];
  }
  return last;
}

}  // namespace

Memory::Memory(int64_t bytes, int64_t shift)
    : block_(static_cast<std::byte*>(
          ::operator new(static_cast<size_t>(bytes + shift), std::align_val_t(256)))),
      shift_(shift) {}

std::vector<float> random_values(int64_t count, std::mt19937& random) {
  std::normal_distribution<float> normal;
  std::vector<float> values(static_cast<size_t>(count));
  std::generate(values.begin(), values.end(), [&] { return normal(random); });
  return values;
}

WeightRows random_weight(int32_t type, int64_t rows, int64_t columns, std::mt19937& random) {
  const int64_t row_bytes = pavo_type_row_bytes(type, columns);
  const int64_t block_bytes = pavo_type_block_bytes(type);
  const int64_t blocks = columns / pavo_type_block_values(type);
  const WeightLayout layout = weight_layout(type, columns);
  const std::vector<size_t> halves = file_halves(type);
  WeightRows weight;
  weight.file.resize(static_cast<size_t>(rows * row_bytes));
  weight.packed.resize(static_cast<size_t>(rows * layout.row_bytes));
  std::uniform_int_distribution<int> byte(0, 255);
  std::uniform_real_distribution<float> real(-1.0f, 1.0f);
  for (std::byte& b : weight.file) {
    b = static_cast<std::byte>(byte(random));
  }
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t b = 0; b < blocks; ++b) {
      std::byte* block = weight.file.data() + row * row_bytes + b * block_bytes;
      const float value = real(random);
      const uint16_t bits =
          type == PAVO_TYPE_BF16 ? pavo_f32_to_bf16(value) : pavo_f32_to_f16(value);
      if (type == PAVO_TYPE_F32) {
        std::memcpy(block, &value, sizeof value);
      } else if (halves.empty()) {
        std::memcpy(block, &bits, sizeof bits);
      }
      for (const size_t at : halves) {
        const uint16_t half = pavo_f32_to_f16(0.05f * real(random));
        std::memcpy(block + at, &half, sizeof half);
      }
    }
  }
  const PackedForm form = {type, false, rows, columns, row_bytes, layout.row_bytes};
  pack_rows(form, weight.file.data(), rows, weight.packed.data());
  return weight;
}

std::vector<float> decoded(
    int32_t type, const std::vector<std::byte>& file, int64_t rows, int64_t columns) {
  std::vector<float> values(static_cast<size_t>(rows * columns));
  const int64_t row_bytes = pavo_type_row_bytes(type, columns);
  for (int64_t row = 0; row < rows; ++row) {
    cpu::dequantize_row(
        type, file.data() + row * row_bytes, columns, values.data() + row * columns);
  }
  return values;
}

uint32_t NodeFixture::add(pavo_tensor tensor, int64_t bytes, int64_t shift) {
  tensors_.push_back(tensor);
  memory_.emplace_back(bytes, shift);
  return static_cast<uint32_t>(tensors_.size() - 1);
}

uint32_t NodeFixture::activation(
    std::vector<int64_t> shape, const std::vector<float>& values, Placing placing) {
  const pavo_tensor tensor = make_tensor(PAVO_TYPE_F32, PAVO_ROLE_ACTIVATION, shape, placing.gap);
  const uint32_t index = add(tensor, span_bytes(tensor), 4 * placing.shift);
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(
        element(tensor, memory_[index].data(), static_cast<int64_t>(i)),
        &values[i],
        sizeof values[i]);
  }
  inputs_.push_back(index);
  return index;
}

uint32_t NodeFixture::indices(const std::vector<int32_t>& values) {
  return indices({static_cast<int64_t>(values.size())}, values);
}

uint32_t NodeFixture::indices(std::vector<int64_t> shape, const std::vector<int32_t>& values) {
  const auto count = static_cast<int64_t>(values.size());
  const uint32_t index = add(make_tensor(PAVO_TYPE_I32, PAVO_ROLE_STEP, shape, 0), 4 * count, 0);
  std::memcpy(memory_[index].data(), values.data(), 4 * values.size());
  inputs_.push_back(index);
  return index;
}

uint32_t NodeFixture::pool(
    int32_t type, std::vector<int64_t> shape, const std::vector<std::byte>& bytes) {
  pavo_tensor tensor = make_tensor(type, PAVO_ROLE_KV_POOL, shape, 0);
  std::fill(std::begin(tensor.stride), std::end(tensor.stride), 0);
  const uint32_t index = add(tensor, static_cast<int64_t>(bytes.size()), 0);
  std::memcpy(memory_[index].data(), bytes.data(), bytes.size());
  inputs_.push_back(index);
  return index;
}

uint32_t NodeFixture::weight(
    int32_t type, uint32_t uses, std::vector<int64_t> shape, const std::vector<std::byte>& bytes) {
  pavo_tensor tensor = make_tensor(type, PAVO_ROLE_WEIGHT, shape, 0);
  tensor.uses = uses;
  const uint32_t index = add(tensor, static_cast<int64_t>(bytes.size()), 0);
  std::memcpy(memory_[index].data(), bytes.data(), bytes.size());
  inputs_.push_back(index);
  return index;
}

uint32_t NodeFixture::output(std::vector<int64_t> shape, Placing placing) {
  int64_t count = 1;
  for (const int64_t size : shape) {
    count *= size;
  }
  const std::vector<float> nan(static_cast<size_t>(count), std::numeric_limits<float>::quiet_NaN());
  outputs_.push_back(activation(std::move(shape), nan, placing));
  inputs_.pop_back();
  return outputs_.back();
}

std::string NodeFixture::run(const Kernel& kernel, std::vector<std::string>* launched) {
  std::vector<const pavo_tensor*> tensors;
  std::vector<std::byte*> data;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    tensors.push_back(&tensors_[i]);
    data.push_back(memory_[i].data());
  }
  node_.struct_size = sizeof node_;
  node_.input_count = static_cast<uint32_t>(inputs_.size());
  node_.output_count = static_cast<uint32_t>(outputs_.size());
  node_.inputs = inputs_.data();
  node_.outputs = outputs_.data();
  node_.params = params_.data();
  pavo_graph graph{};
  graph.struct_size = sizeof graph;
  graph.tensor_count = static_cast<uint32_t>(tensors.size());
  graph.tensors = tensors.data();
  graph.bucket = &bucket;
  const NodeQuery query = {caps, graph, node_};
  pavo_verdict verdict{};
  verdict.struct_size = sizeof verdict;
  if (!check_node(query, &verdict) || !kernel.supports(query, &verdict)) {
    return verdict.text;
  }
  const int64_t workspace_bytes = kernel.workspace_bytes(query);
  const Memory workspace(workspace_bytes);
  std::memset(workspace.data(), 0x7f, static_cast<size_t>(workspace_bytes));
  Launcher launcher;
  const cudaError_t error = kernel.launch({query, data.data(), workspace.data(), launcher});
  if (launched != nullptr) {
    *launched = launcher.launched;
  }
  return error == cudaSuccess ? "" : "launch failed";
}

std::vector<float> NodeFixture::values(uint32_t index) const {
  const pavo_tensor& tensor = tensors_[index];
  int64_t count = 1;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    count *= tensor.shape[i];
  }
  std::vector<float> values(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(
        &values[static_cast<size_t>(i)], element(tensor, memory_[index].data(), i), sizeof(float));
  }
  return values;
}

}  // namespace pavo::cuda::testing
