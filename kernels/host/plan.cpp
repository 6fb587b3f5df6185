#include "kernels/host/plan.h"

#include <algorithm>
#include <cinttypes>
#include <string>

#include "pavo/plugin_helpers.h"

#include "kernels/common/checks.h"
#include "kernels/common/weight_layout.h"
#include "kernels/host/error.h"
#include "kernels/host/predicates.h"

namespace {

using pavo::cuda::Kernel;
using pavo::cuda::Launcher;
using pavo::cuda::NodeQuery;
using pavo::sdk::fail;

constexpr int64_t kWorkspaceAlignment = 256;

// "node 12 'blk.0.attn_q', kernel matmul_generic"
std::string describe(uint32_t index, const pavo_node& node, const char* kernel) {
  std::string text = "node " + std::to_string(index) + " '";
  text += pavo::sdk::view(node.name).substr(0, 96);
  return text + "', kernel " + kernel;
}

// Bytes from a tensor's first to its last element as it must be bound.
int64_t extent_bytes(const pavo_tensor& tensor) {
  const int64_t count = pavo::sdk::element_count(tensor);
  if (count == 0) {
    return 0;
  }
  if (tensor.role == PAVO_ROLE_WEIGHT) {
    return pavo::cuda::tensor_bytes(tensor);
  }
  if (tensor.role == PAVO_ROLE_KV_POOL) {
    pavo_kv_layout layout = {};
    if (tensor.rank != 4 || pavo_kv_layout_init(tensor.type, tensor.shape[3], &layout) != 0) {
      return 0;  // no kernel takes it, so no node uses it
    }
    return tensor.shape[0] * tensor.shape[1] * layout.head_bytes;
  }
  int64_t bytes = 4;
  for (int32_t i = 0; i < tensor.rank; ++i) {
    bytes += (tensor.shape[i] - 1) * tensor.stride[i];
  }
  return bytes;
}

int64_t alignment_of(const pavo_tensor& tensor) {
  switch (tensor.role) {
    case PAVO_ROLE_WEIGHT:
      return pavo::cuda::kWeightAlignment;
    case PAVO_ROLE_KV_POOL:
      return 16;
    default:
      return 4;
  }
}

}  // namespace

pavo_plan::~pavo_plan() {
  pavo_error ignored = {};
  if (device_->enter(&ignored) == PAVO_OK && runs_ > 0) {
    cudaStreamSynchronize(device_->compute());
  }
  for (cudaEvent_t timer : timers_) {
    cudaEventDestroy(timer);
  }
  cudaGetLastError();
}

int32_t pavo_plan::init(const pavo_graph* graph, pavo_error* error) {
  PAVO_TRY(graph_.init(graph, error));
  PAVO_TRY(choose_kernels(error));
  data_.assign(graph_.graph().tensor_count + 1, nullptr);
  PAVO_TRY(count_launches(error));
  return device_->options().timings ? make_timers(error) : PAVO_OK;
}

int32_t pavo_plan::choose_kernels(pavo_error* error) {
  const pavo_plugin& plugin = device_->plugin();
  extents_.assign(graph_.graph().tensor_count, -1);
  for (uint32_t i = 0; i < graph_.node_count(); ++i) {
    pavo_verdict verdict = {};
    verdict.struct_size = sizeof verdict;
    const Kernel* kernel = pavo::cuda::choose_kernel(
        plugin.info(), plugin.options(), device_->caps(), graph_, i, &verdict);
    const pavo_node& node = graph_.node(i);
    if (kernel == nullptr) {
      return fail(
          error, PAVO_ERROR_UNSUPPORTED, "%s: %s", describe(i, node, "none").c_str(), verdict.text);
    }
    kernels_.push_back(kernel);
    workspace_bytes_ = std::max(workspace_bytes_, verdict.workspace_bytes);
    for (uint32_t k = 0; k < node.input_count + node.output_count; ++k) {
      const uint32_t tensor =
          k < node.input_count ? node.inputs[k] : node.outputs[k - node.input_count];
      if (tensor != PAVO_NO_TENSOR) {
        extents_[tensor] = extent_bytes(*graph_.graph().tensors[tensor]);
      }
    }
  }
  return PAVO_OK;
}

int32_t pavo_plan::count_launches(pavo_error* error) {
  Launcher launcher = Launcher::dry(device_->caps().shared_bytes_per_block);
  PAVO_TRY(launch_all(launcher, error));
  launches_ = launcher.launches();
  return PAVO_OK;
}

int32_t pavo_plan::make_timers(pavo_error* error) {
  timers_.reserve(graph_.node_count() + 1);
  for (uint32_t i = 0; i <= graph_.node_count(); ++i) {
    cudaEvent_t timer = nullptr;
    PAVO_CUDA_TRY(cudaEventCreate(&timer));
    timers_.push_back(timer);
  }
  return PAVO_OK;
}

// Runs for every tensor of every step, so the message is made only when it is needed.
int32_t pavo_plan::bind_tensor(uint32_t index, const pavo_binding& binding, pavo_error* error) {
  const pavo_tensor& tensor = *graph_.graph().tensors[index];
  const int64_t alignment = alignment_of(tensor);
  int32_t code = pavo::cuda::check_range(device_, binding, extents_[index], "binding", error);
  if (code == PAVO_OK && binding.offset % alignment != 0) {
    code = fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected an offset that is a multiple of %" PRId64 ", got %" PRId64,
        alignment,
        binding.offset);
  }
  if (code != PAVO_OK) {
    const std::string detail(error->message, error->message_size);
    const std::string name(pavo::sdk::view(tensor.name).substr(0, 96));
    return fail(error, code, "tensor %u '%s': %s", index, name.c_str(), detail.c_str());
  }
  data_[index] = binding.buffer->data + binding.offset;
  return PAVO_OK;
}

int32_t pavo_plan::bind(const pavo_submit& submit, pavo_error* error) {
  const uint32_t tensors = graph_.graph().tensor_count;
  if (submit.binding_count != tensors || (tensors != 0 && submit.bindings == nullptr)) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "submit: expected %u bindings, one per tensor of the plan, got %u",
        tensors,
        submit.binding_count);
  }
  for (uint32_t i = 0; i < tensors; ++i) {
    if (extents_[i] >= 0) {
      PAVO_TRY(bind_tensor(i, submit.bindings[i], error));
    }
  }
  data_[tensors] = nullptr;
  if (workspace_bytes_ > 0) {
    PAVO_TRY(
        pavo::cuda::check_range(device_, submit.workspace, workspace_bytes_, "workspace", error));
    if (submit.workspace.offset % kWorkspaceAlignment != 0) {
      return fail(
          error,
          PAVO_ERROR_INVALID_ARGUMENT,
          "workspace: expected an offset that is a multiple of %" PRId64 ", got %" PRId64,
          kWorkspaceAlignment,
          submit.workspace.offset);
    }
    data_[tensors] = submit.workspace.buffer->data + submit.workspace.offset;
  }
  return PAVO_OK;
}

int32_t pavo_plan::launch_node(uint32_t index, Launcher& launcher, pavo_error* error) {
  const pavo_node& node = graph_.node(index);
  const Kernel& kernel = *kernels_[index];
  const NodeQuery query = {device_->caps(), graph_.graph(), node};
  if (device_->options().recheck) {
    pavo_verdict verdict = {};
    verdict.struct_size = sizeof verdict;
    if (!kernel.supports(query, &verdict)) {
      return fail(
          error,
          PAVO_ERROR_INTERNAL,
          "%s: accepted before, now refused: %s",
          describe(index, node, kernel.name).c_str(),
          verdict.text);
    }
  }
  cudaError_t code = kernel.launch({query, data_.data(), data_.back(), launcher});
  if (code == cudaSuccess && device_->options().sync && !launcher.is_dry()) {
    code = cudaStreamSynchronize(launcher.stream());
  }
  if (code != cudaSuccess) {
    const std::string about = describe(index, node, launcher.last().kernel);
    return pavo::cuda::fail_cuda(error, code, "launch", about.c_str());
  }
  return PAVO_OK;
}

int32_t pavo_plan::launch_all(Launcher& launcher, pavo_error* error) {
  const bool timed = !timers_.empty() && !launcher.is_dry();
  if (timed) {
    PAVO_CUDA_TRY(cudaEventRecord(timers_[0], launcher.stream()));
  }
  for (uint32_t i = 0; i < graph_.node_count(); ++i) {
    PAVO_TRY(launch_node(i, launcher, error));
    if (timed) {
      PAVO_CUDA_TRY(cudaEventRecord(timers_[i + 1], launcher.stream()));
    }
  }
  return PAVO_OK;
}

int32_t pavo_plan::run(pavo_error* error) {
  const auto issue = [this](pavo_error* failure) {
    Launcher launcher(device_->compute(), device_->caps().shared_bytes_per_block);
    return launch_all(launcher, failure);
  };
  const pavo::cuda::Options& options = device_->options();
  const bool first = runs_++ == 0;
  // The first run loads code, which capturing forbids; and a plan that runs once, as prompts of odd
  // lengths do, is not worth a graph.
  if (!options.graphs || options.timings || options.sync || launches_ < 2 || first) {
    return issue(error);
  }
  const bool worked = graphs_.works();
  const int32_t code = graphs_.run(device_->compute(), data_, issue, error);
  if (worked && !graphs_.works()) {
    device_->plugin().log(PAVO_LOG_WARN, "CUDA graphs do not work here; launching each kernel");
  }
  return code;
}

int32_t pavo_plan::submit(const pavo_submit& submit, pavo_error* error) {
  const pavo::cuda::Fences fences = {
      submit.waits, submit.wait_count, submit.signals, submit.signal_count};
  PAVO_TRY(fences.check(device_, error));
  PAVO_TRY(bind(submit, error));
  pavo_error failure = {};
  failure.struct_size = sizeof failure;
  int32_t code = fences.wait_in(device_->compute(), &failure);
  if (code == PAVO_OK) {
    code = run(&failure);
  }
  device_->note(code, failure);
  return fences.signal_from(
      device_, device_->compute(), code == PAVO_OK ? nullptr : &failure, error);
}

int32_t pavo_plan::timings(int64_t* node_ns, uint32_t node_count, pavo_error* error) {
  if (node_count != graph_.node_count() || (node_ns == nullptr && node_count != 0)) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "plan_timings: expected room for %u nodes, got %u",
        graph_.node_count(),
        node_count);
  }
  if (timers_.empty()) {
    return fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "plan_timings: nothing was measured; create the plugin with the option timings=1");
  }
  PAVO_CUDA_TRY(cudaEventSynchronize(timers_.back()));
  for (uint32_t i = 0; i < node_count; ++i) {
    float milliseconds = 0.0f;
    PAVO_CUDA_TRY(cudaEventElapsedTime(&milliseconds, timers_[i], timers_[i + 1]));
    node_ns[i] = static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6);
  }
  return PAVO_OK;
}
