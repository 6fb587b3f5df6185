#include "tests/fakes/mock/breaks.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <mutex>
#include <thread>

#include "pavo/plugin_helpers.h"

namespace pavo::mock {
namespace {

constexpr std::string_view kBreaks[] = {
    // options, instances, devices
    "take_any_option",
    "ignore_tail",
    "leak_host_memory",
    "leak_thread",
    "early_thread",
    "change_device_list",
    "wrong_code",
    "no_message",
    "output_on_error",
    "overrun_error",
    "print",
    "exit_in_self_test",
    "ignore_no_memory",
    "ignore_no_memory_in_plan",
    // memory, copies, timelines
    "count_no_memory",
    "take_any_size",
    "abort_on_size",
    "ignore_pitch",
    "take_any_copy",
    "copy_before_check",
    "never_time_out",
    "take_any_rows",
    // verdicts
    "no_reason",
    "no_text",
    "impure",
    "share_verdict",
    "answer_first_only",
    "accept_nonsense",
    "overrun_verdict",
    "ignore_tensor_tail",
    "ignore_force",
    "lie_about_rows",
    "lie_about_op",
    // runs
    "refuse_after_accept",
    "plan_refused_node",
    "wrong_value",
    "wrong_odd_value",
    "wrong_at_811",
    "wrong_at_odd_offset",
    "ignore_order",
    "write_nothing",
    "write_behind_output",
    "write_gap",
    "write_input",
    "write_behind_workspace",
    "follow_index"};

// The rows of a head, not the heads of a row, lie side by side.
bool is_reordered(const TensorFacts& tensor) {
  return tensor.rank == 3 && tensor.stride[0] < tensor.stride[1];
}

bool writes_gap(const TensorFacts& tensor) {
  return tensor.rank == 2 && tensor.stride[0] > tensor.shape[1] * 4 && tensor.shape[0] > 0;
}

}  // namespace

bool breaks(std::string_view rule) {
  static const std::string_view broken = [] {
    const char* name = std::getenv("PAVO_MOCK_BREAK");
    const std::string_view text = name == nullptr ? "" : name;
    const auto* end = std::end(kBreaks);
    if (!text.empty() && std::find(std::begin(kBreaks), end, text) == end) {
      std::abort();  // a misspelt rule would prove nothing
    }
    return text;
  }();
  return broken == rule;
}

BrokenRun::BrokenRun(
    const Plan& plan, const pavo_binding* inner_bindings, const pavo_binding& workspace)
    : plan_(plan), bindings_(inner_bindings), workspace_(workspace) {}

std::byte* BrokenRun::data(uint32_t tensor) const {
  const pavo_binding& binding = bindings_[tensor];
  return static_cast<std::byte*>(inner_api->buffer_host(binding.buffer)) + binding.offset;
}

void BrokenRun::before() {
  const GraphFacts& graph = plan_.graph;
  if (breaks("write_nothing")) {
    const auto bytes = static_cast<size_t>(graph.tensors[graph.outputs.front()].bytes);
    saved_.assign(output(), output() + bytes);
  }
  if (breaks("write_input")) {
    *data(graph.inputs.front()) ^= std::byte{1};
  }
  for (const uint32_t input : graph.inputs) {
    const TensorFacts& tensor = graph.tensors[input];
    if (breaks("follow_index") && tensor.role == PAVO_ROLE_STEP && tensor.bytes >= 4) {
      int32_t index = 0;
      std::memcpy(&index, data(input), sizeof index);
      const volatile std::byte* row = data(graph.inputs.front()) + int64_t{4096} * index;
      static_cast<void>(*row);
    }
  }
}

void BrokenRun::after() {
  const TensorFacts& tensor = plan_.graph.tensors[plan_.graph.outputs.front()];
  const int64_t length = tensor.rank > 0 ? tensor.shape[tensor.rank - 1] : 0;
  const bool odd = length % 2 == 1;
  const bool odd_offset = bindings_[plan_.graph.outputs.front()].offset % 16 != 0;
  const TensorFacts& input = plan_.graph.tensors[plan_.graph.inputs.front()];
  if (tensor.bytes >= 4 &&
      (breaks("wrong_value") || (breaks("wrong_odd_value") && odd) ||
       (breaks("wrong_at_811") && length == 811) || (breaks("wrong_at_odd_offset") && odd_offset) ||
       (breaks("ignore_order") && is_reordered(input)))) {
    float value = 0;
    std::memcpy(&value, output(), sizeof value);
    value += 1;
    std::memcpy(output(), &value, sizeof value);
  } else if (breaks("write_nothing")) {
    std::copy(saved_.begin(), saved_.end(), output());
  } else if (breaks("write_behind_output")) {
    output()[tensor.bytes] = std::byte{1};
  } else if (breaks("write_gap") && writes_gap(tensor)) {
    output()[tensor.shape[1] * 4] = std::byte{1};
  } else if (breaks("write_behind_workspace") && workspace_.buffer != nullptr) {
    auto* memory = static_cast<std::byte*>(inner_api->buffer_host(workspace_.buffer));
    memory[workspace_.offset + plan_.workspace_bytes] = std::byte{1};
  }
}

void break_verdict(const pavo_graph& graph, pavo_verdict* verdict) {
  static std::atomic<int> calls{0};
  const bool refused = verdict->decision == PAVO_REFUSE;
  if (breaks("no_reason") && refused) {
    verdict->reason = PAVO_REASON_NONE;
  } else if (breaks("lie_about_op") && refused) {
    verdict->reason = PAVO_REASON_OP;
  } else if (breaks("no_text") && refused) {
    verdict->text[0] = '\0';
  } else if (breaks("impure") && !refused) {
    verdict->workspace_bytes += ++calls % 2;
  } else if (breaks("accept_nonsense") && refused) {
    sdk::clear_verdict(verdict);
    verdict->decision = PAVO_ACCEPT;
    sdk::copy_text(verdict->variant, sizeof verdict->variant, "anything");
  } else if (breaks("overrun_verdict") && verdict->struct_size > sizeof *verdict) {
    std::memset(reinterpret_cast<char*>(verdict) + sizeof *verdict, 0, 4);
  } else if (breaks("lie_about_rows") && graph.bucket->kv_rows > 0) {
    verdict->kv_rows_max = graph.bucket->kv_rows / 2;
  }
}

void share_verdict(pavo_verdict* verdict) {
  static std::mutex mutex;
  static pavo_verdict shared;
  if (verdict->struct_size != sizeof shared) {
    return;
  }
  {
    const std::lock_guard<std::mutex> lock(mutex);
    shared = *verdict;
  }
  std::this_thread::sleep_for(std::chrono::microseconds(100));
  const std::lock_guard<std::mutex> lock(mutex);
  *verdict = shared;
}

void use_memory_unchecked() {
  constexpr uint64_t kBytes = 64;
  void* memory = host_api->alloc(host_api->context, kBytes, alignof(std::max_align_t));
  std::memset(memory, 0, kBytes);
  host_api->free(host_api->context, memory, kBytes);
}

GraphFacts facts_of(const pavo_graph& graph) {
  GraphFacts facts;
  for (uint32_t i = 0; i < graph.tensor_count; ++i) {
    const pavo_tensor& tensor = *graph.tensors[i];
    TensorFacts fact;
    fact.role = tensor.role;
    fact.rank = tensor.rank;
    int64_t end = 4;
    for (int32_t d = 0; d < tensor.rank; ++d) {
      fact.shape[d] = tensor.shape[d];
      fact.stride[d] = tensor.stride[d];
      end = tensor.shape[d] == 0 ? INT64_MIN / 2 : end + (tensor.shape[d] - 1) * tensor.stride[d];
    }
    const bool strided = tensor.role == PAVO_ROLE_ACTIVATION || tensor.role == PAVO_ROLE_STEP;
    fact.bytes = strided && end > 0 ? end : 0;
    facts.tensors.push_back(fact);
  }
  const pavo_node& node = *graph.nodes[0];
  for (uint32_t i = 0; i < node.input_count; ++i) {
    if (node.inputs[i] != PAVO_NO_TENSOR) {
      facts.inputs.push_back(node.inputs[i]);
    }
  }
  facts.outputs.assign(node.outputs, node.outputs + node.output_count);
  return facts;
}

CutGraph::CutGraph(const pavo_graph& graph) : graph_(graph) {
  tensors_.reserve(graph.tensor_count);
  for (uint32_t i = 0; i < graph.tensor_count; ++i) {
    tensors_.push_back(*graph.tensors[i]);
    tensors_.back().struct_size = sizeof(pavo_tensor);
    pointers_.push_back(&tensors_.back());
  }
  graph_.tensors = pointers_.data();
}

void break_open_error(pavo_device** out, pavo_error* error, int32_t* code) {
  if (breaks("no_message")) {
    error->message_size = 0;
  } else if (breaks("output_on_error")) {
    *out = reinterpret_cast<pavo_device*>(out);
  } else if (breaks("overrun_error")) {
    std::memset(static_cast<void*>(error->message), 0, sizeof error->message);
  } else if (breaks("wrong_code")) {
    *code = error->code = PAVO_ERROR_INTERNAL;
  }
}

}  // namespace pavo::mock
