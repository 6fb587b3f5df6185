#include "tests/ops/op_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "tests/ops/device_memory.h"

namespace pavo::test {
namespace {

HostTensor strided(int32_t type, int32_t role, const Shape& shape, int64_t row_gap) {
  HostTensor tensor;
  tensor.desc.struct_size = sizeof tensor.desc;
  tensor.desc.type = type;
  tensor.desc.role = role;
  tensor.desc.rank = static_cast<int32_t>(shape.size());
  int64_t stride = 4;
  for (int32_t i = tensor.desc.rank - 1; i >= 0; --i) {
    tensor.desc.shape[i] = shape[static_cast<size_t>(i)];
    tensor.desc.stride[i] = stride;
    stride *= tensor.desc.shape[i];
    stride += i == tensor.desc.rank - 1 ? row_gap : 0;
  }
  tensor.bytes.assign(static_cast<size_t>(stride), std::byte{0x5a});
  return tensor;
}

template <typename T>
HostTensor filled(
    int32_t type, int32_t role, const Shape& shape, const std::vector<T>& values, int64_t gap) {
  HostTensor tensor = strided(type, role, shape, gap);
  if (static_cast<int64_t>(values.size()) != tensor.elements()) {
    throw std::logic_error("a test tensor has the wrong number of values");
  }
  for (size_t i = 0; i < values.size(); ++i) {
    std::memcpy(
        tensor.bytes.data() + tensor.offset(static_cast<int64_t>(i)), &values[i], sizeof(T));
  }
  return tensor;
}

HostTensor stored(int32_t type, int32_t role, const Shape& shape, std::vector<std::byte> bytes) {
  HostTensor tensor = strided(type, role, shape, 0);
  std::fill_n(tensor.desc.stride, PAVO_MAX_RANK, 0);
  tensor.bytes = std::move(bytes);
  return tensor;
}

// A plan and what a run of it needs on the device.
class CaseRun {
 public:
  CaseRun(const Backend& backend, const OpCase& test_case)
      : backend_(backend), case_(test_case), graph_(test_case) {}
  ~CaseRun() { backend_.api().plan_destroy(plan_); }
  CaseRun(const CaseRun&) = delete;
  CaseRun& operator=(const CaseRun&) = delete;

  void query(pavo_verdict* verdict) {
    pavo_verdict* verdicts[] = {verdict};
    pavo_error error = empty_error();
    require_ok(
        backend_.api().query_nodes(
            backend_.plugin(), backend_.caps(), &graph_.graph, verdicts, &error),
        error,
        "query_nodes");
  }

  int32_t prepare(pavo_error* error) {
    plan_info_.struct_size = sizeof plan_info_;
    return backend_.api().plan_create(backend_.device(), &graph_.graph, &plan_, &plan_info_, error);
  }

  int32_t submit(OpRun* run, pavo_error* error) {
    DeviceMemory memory(backend_);
    int64_t position = 0;
    for (const HostTensor& tensor : case_.tensors) {
      int64_t shift = 0;
      if (tensor.desc.role == PAVO_ROLE_WEIGHT) {
        shift = case_.weight_shift;
      } else if (tensor.desc.role == PAVO_ROLE_ACTIVATION) {
        shift = 4 * case_.activation_shift * (1 + position++ % 3);
      }
      memory.add(tensor, shift);
    }
    memory.add_workspace(plan_info_.workspace_bytes);
    const int32_t code = memory.run(plan_, error);
    run->damage = memory.read_back(case_, &run->tensors);
    return code;
  }

 private:
  const Backend& backend_;
  const OpCase& case_;
  CaseGraph graph_;
  pavo_plan* plan_ = nullptr;
  pavo_plan_info plan_info_{};
};

}  // namespace

CaseGraph::CaseGraph(const OpCase& test_case) {
  for (const HostTensor& tensor : test_case.tensors) {
    tensors.push_back(&tensor.desc);
  }
  node.struct_size = sizeof node;
  node.op = test_case.op;
  node.id = 1;
  node.input_count = static_cast<uint32_t>(test_case.inputs.size());
  node.output_count = static_cast<uint32_t>(test_case.outputs.size());
  node.inputs = test_case.inputs.data();
  node.outputs = test_case.outputs.data();
  node.params = test_case.params.data();
  node.name = sdk::string("test");
  graph.struct_size = sizeof graph;
  graph.tensor_count = static_cast<uint32_t>(tensors.size());
  graph.tensors = tensors.data();
  graph.node_count = 1;
  graph.nodes = nodes;
  graph.bucket = &test_case.bucket;
}

int64_t HostTensor::offset(int64_t index) const {
  if (desc.role == PAVO_ROLE_WEIGHT) {
    return index * static_cast<int64_t>(sizeof(float));
  }
  int64_t result = 0;
  for (int32_t i = desc.rank - 1; i >= 0; --i) {
    result += index % desc.shape[i] * desc.stride[i];
    index /= desc.shape[i];
  }
  return result;
}

float HostTensor::at(int64_t index) const {
  float value = 0;
  std::memcpy(&value, bytes.data() + offset(index), sizeof value);
  return value;
}

HostTensor activation(const Shape& shape, const std::vector<float>& values, int64_t row_gap) {
  return filled(PAVO_TYPE_F32, PAVO_ROLE_ACTIVATION, shape, values, row_gap);
}

HostTensor output(const Shape& shape, int64_t row_gap) {
  HostTensor tensor = strided(PAVO_TYPE_F32, PAVO_ROLE_ACTIVATION, shape, row_gap);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    std::memcpy(tensor.bytes.data() + tensor.offset(i), &nan, sizeof nan);
  }
  return tensor;
}

HostTensor reordered(const HostTensor& tensor) {
  HostTensor result = tensor;
  const int32_t rank = tensor.desc.rank;
  if (rank < 2) {
    return result;
  }
  // Of a matrix the columns come one after the other.
  int64_t stride = 4;
  for (int32_t i = rank - 1; i >= 0; --i) {
    const int32_t dimension = rank == 2 ? 1 - i : i == rank - 1 ? i : i == 0 ? rank - 2 : i - 1;
    result.desc.stride[dimension] = stride;
    stride *= tensor.desc.shape[dimension];
  }
  result.bytes.assign(static_cast<size_t>(stride), std::byte{0x5a});
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    std::memcpy(result.bytes.data() + result.offset(i), tensor.bytes.data() + tensor.offset(i), 4);
  }
  return result;
}

HostTensor step(const Shape& shape, const std::vector<int32_t>& values) {
  return filled(PAVO_TYPE_I32, PAVO_ROLE_STEP, shape, values, 0);
}

HostTensor step_f32(const Shape& shape, const std::vector<float>& values) {
  return filled(PAVO_TYPE_F32, PAVO_ROLE_STEP, shape, values, 0);
}

HostTensor weight(int32_t type, const Shape& shape, std::vector<std::byte> rows, uint32_t uses) {
  HostTensor tensor = stored(type, PAVO_ROLE_WEIGHT, shape, std::move(rows));
  tensor.desc.uses = uses;
  return tensor;
}

HostTensor weight_f32(const std::vector<float>& values, uint32_t uses) {
  std::vector<std::byte> bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return weight(PAVO_TYPE_F32, {static_cast<int64_t>(values.size())}, std::move(bytes), uses);
}

HostTensor kv_pool(
    int32_t type, int64_t pages, int64_t heads, int64_t dim, std::vector<std::byte> bytes) {
  return stored(type, PAVO_ROLE_KV_POOL, {pages, heads, PAVO_KV_PAGE_ROWS, dim}, std::move(bytes));
}

void OpCase::add_input(HostTensor tensor) {
  inputs.push_back(static_cast<uint32_t>(tensors.size()));
  tensors.push_back(std::move(tensor));
}

void OpCase::add_output(HostTensor tensor) {
  tensor.is_output = true;
  outputs.push_back(static_cast<uint32_t>(tensors.size()));
  tensors.push_back(std::move(tensor));
}

OpRun run_case(const Backend& backend, const OpCase& test_case) {
  OpRun run;
  run.verdict.struct_size = sizeof run.verdict;
  CaseRun case_run(backend, test_case);
  case_run.query(&run.verdict);
  pavo_error error = empty_error();
  run.code = case_run.prepare(&error);
  if (run.code == PAVO_OK && !run.refused()) {
    run.code = case_run.submit(&run, &error);
  }
  run.message.assign(error.message, error.message_size);
  return run;
}

}  // namespace pavo::test
