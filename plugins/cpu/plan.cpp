#include "plugins/cpu/plan.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>

#include "pavo/plugin_helpers.h"

#include "plugins/cpu/device.h"
#include "plugins/cpu/kernel_table.h"
#include "plugins/cpu/tensor_view.h"
#include "plugins/cpu/timeline.h"

namespace {

using pavo::sdk::fail;

constexpr uintptr_t kWorkspaceAlignment = 64;
constexpr uintptr_t kPoolAlignment = 16;

uintptr_t required_alignment(const pavo_tensor& tensor) {
  switch (tensor.role) {
    case PAVO_ROLE_WEIGHT:
      return 1;  // wherever a model file has it
    case PAVO_ROLE_KV_POOL:
      return kPoolAlignment;
    default:
      return alignof(float);
  }
}

bool is_aligned(const std::byte* address, uintptr_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

int name_size(const pavo_node& node) {
  return static_cast<int>(std::min<uint64_t>(node.name.size, 80));
}

}  // namespace

int32_t pavo_plan::init(const pavo_graph* graph, pavo_error* error) {
  const int32_t code = graph_.init(graph, error);
  if (code != PAVO_OK) {
    return code;
  }
  const pavo_graph& copy = graph_.graph();
  for (uint32_t i = 0; i < copy.node_count; ++i) {
    pavo_verdict verdict{};
    verdict.struct_size = sizeof verdict;
    const pavo_node& node = graph_.node(i);
    const pavo::cpu::Kernel* kernel = nullptr;
    if (graph_.fault(i) != nullptr) {
      verdict = *graph_.fault(i);
    } else {
      kernel = pavo::cpu::choose_kernel({device_->options(), copy, node}, &verdict);
    }
    if (kernel == nullptr) {
      return fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "node %" PRIu64 " (%.*s) was not accepted, operand %d: %s",
          node.id,
          name_size(node),
          node.name.data,
          verdict.operand,
          verdict.text);
    }
    kernels_.push_back(kernel);
    workspace_bytes_ = std::max(workspace_bytes_, verdict.workspace_bytes);
  }
  for (uint32_t i = 0; i < copy.tensor_count; ++i) {
    extents_.push_back(pavo::cpu::extent_bytes(*copy.tensors[i]));
  }
  data_.resize(copy.tensor_count);
  return PAVO_OK;
}

int32_t pavo_plan::bind_operand(
    const pavo_submit& submit, const pavo_node& node, uint32_t operand, pavo_error* error) {
  const bool is_output = operand >= node.input_count;
  const uint32_t index =
      is_output ? node.outputs[operand - node.input_count] : node.inputs[operand];
  if (index == PAVO_NO_TENSOR || extents_[index] == 0) {
    return PAVO_OK;
  }
  char what[160];
  std::snprintf(
      what,
      sizeof what,
      "node %" PRIu64 " (%.*s), operand %u",
      node.id,
      name_size(node),
      node.name.data,
      operand);
  const pavo_binding& binding = submit.bindings[index];
  const int32_t code = pavo::cpu::check_range(device_, binding, extents_[index], what, error);
  if (code != PAVO_OK) {
    return code;
  }
  if (is_output && binding.buffer->imported) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "%s: an output is bound to imported memory, which is read only",
        what);
  }
  data_[index] = binding.buffer->data + binding.offset;
  const uintptr_t alignment = required_alignment(*graph_.graph().tensors[index]);
  if (!is_aligned(data_[index], alignment)) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "%s: expected an address that is a multiple of %d, got %p",
        what,
        static_cast<int>(alignment),
        static_cast<void*>(data_[index]));
  }
  return PAVO_OK;
}

int32_t pavo_plan::bind(const pavo_submit& submit, pavo_error* error) {
  const pavo_graph& graph = graph_.graph();
  if (submit.binding_count != graph.tensor_count ||
      (submit.bindings == nullptr && graph.tensor_count != 0)) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected one binding for each of the %u tensors, got %u",
        graph.tensor_count,
        submit.binding_count);
  }
  std::fill(data_.begin(), data_.end(), nullptr);
  for (uint32_t i = 0; i < graph.node_count; ++i) {
    const pavo_node& node = graph_.node(i);
    for (uint32_t operand = 0; operand < node.input_count + node.output_count; ++operand) {
      const int32_t code = bind_operand(submit, node, operand, error);
      if (code != PAVO_OK) {
        return code;
      }
    }
  }
  workspace_ = nullptr;
  if (workspace_bytes_ == 0) {
    return PAVO_OK;
  }
  const int32_t code =
      pavo::cpu::check_range(device_, submit.workspace, workspace_bytes_, "workspace", error);
  if (code != PAVO_OK) {
    return code;
  }
  workspace_ = submit.workspace.buffer->data + submit.workspace.offset;
  return is_aligned(workspace_, kWorkspaceAlignment) && !submit.workspace.buffer->imported
             ? PAVO_OK
             : fail(
                   error,
                   PAVO_ERROR_INVALID_ARGUMENT,
                   "workspace: expected writable memory at a multiple of 64 bytes");
}

int32_t pavo_plan::run(pavo_error* error) {
  const auto now = [] { return std::chrono::steady_clock::now(); };
  node_ns_.assign(kernels_.size(), 0);
  auto start = now();
  for (size_t i = 0; i < kernels_.size(); ++i) {
    const pavo_node& node = graph_.node(static_cast<uint32_t>(i));
    const pavo::cpu::KernelArgs args = {
        graph_.graph(), node, data_.data(), workspace_, device_->pool()};
    const int32_t code = kernels_[i]->launch(args, error);
    if (code != PAVO_OK) {
      return code;
    }
    const auto end = now();
    node_ns_[i] = std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count();
    start = end;
  }
  return PAVO_OK;
}

int32_t pavo_plan::submit(const pavo_submit& submit, pavo_error* error) {
  const pavo::cpu::Fences fences = {
      submit.waits, submit.wait_count, submit.signals, submit.signal_count};
  int32_t code = fences.check(device_, error);
  if (code == PAVO_OK) {
    code = bind(submit, error);
  }
  if (code != PAVO_OK) {
    return code;
  }
  pavo_error failure{};
  failure.struct_size = sizeof failure;
  code = run(&failure);
  return fences.finish(code == PAVO_OK ? nullptr : &failure, error);
}

int32_t pavo_plan::timings(int64_t* node_ns, uint32_t node_count, pavo_error* error) const {
  if (node_count != kernels_.size() || node_ns_.size() != kernels_.size() ||
      (node_ns == nullptr && node_count != 0)) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected a plan that has run and room for %zu nodes, got %zu runs and %u nodes",
        kernels_.size(),
        node_ns_.empty() ? size_t{0} : size_t{1},
        node_count);
  }
  std::copy(node_ns_.begin(), node_ns_.end(), node_ns);
  return PAVO_OK;
}
