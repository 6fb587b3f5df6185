#include "core/program.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/device_lowering.h"
#include "core/memory_plan.h"
#include "core/program_trace.h"
#include "core/transfer.h"

namespace pavo {
namespace {

constexpr int64_t kStepAlignment = 64;

}  // namespace

Status Arena::reserve(Device& device, int64_t size_bytes) {
  if (size_bytes <= buffer_.size_bytes()) {
    return Status();
  }
  PAVO_RETURN_IF_ERROR(device.wait());
  PAVO_ASSIGN_OR_RETURN(buffer_, device.create_buffer(size_bytes));
  return Status();
}

Program::Program(Graph graph, std::vector<TensorId> outputs, ProgramContext& context)
    : graph_(std::move(graph)), outputs_(std::move(outputs)), context_(context) {}

Program::~Program() {
  for (Device* device : context_.devices) {
    (void)device->wait();  // plans may not be destroyed under running work
  }
}

Result<std::unique_ptr<Program>> Program::create(
    Graph graph,
    std::vector<TensorId> outputs,
    const PlacementOptions& options,
    ProgramContext& context) {
  std::unique_ptr<Program> program(new Program(std::move(graph), std::move(outputs), context));
  TraceSpan span(context.trace, "planner", "prepare program");
  span.arg("tokens", int64_t{program->graph_.bucket().tokens});
  span.arg("kv_rows", program->graph_.bucket().kv_rows);
  span.arg("nodes", static_cast<int64_t>(program->graph_.nodes().size()));
  PAVO_ASSIGN_OR_RETURN(
      std::vector<LoweredClass> lowered,
      lower_for_devices(&program->graph_, context.devices, options));
  PAVO_ASSIGN_OR_RETURN(program->placement_, place(program->graph_, context.devices, options));
  program->placement_.lowered = std::move(lowered);
  program->make_segments_and_edges();
  program->plan_activations();
  PAVO_RETURN_IF_ERROR(program->make_step_buffers());
  PAVO_RETURN_IF_ERROR(program->prepare_plans());
  return program;
}

// Cuts the graph and notes, for each segment, which activations come from another device, which K/V
// pools it reads and which it writes.
void Program::make_segments_and_edges() {
  layouts_.resize(context_.devices.size());
  for (Segment& cut : make_segments(placement_)) {
    PreparedSegment segment;
    segment.device = cut.device;
    segment.nodes = std::move(cut.nodes);
    segment.view = std::make_unique<GraphView>(graph_, segment.nodes);
    std::set<TensorId> fetched;
    for (const uint32_t n : segment.nodes) {
      const Node& node = graph_.nodes()[n];
      for (const TensorId input : node.inputs) {
        if (input == kNoTensor) {
          continue;
        }
        const int32_t role = graph_.tensor(input).role;
        const TensorId root = graph_.storage(input);
        const auto producer = producers_.find(root);
        if (role == PAVO_ROLE_ACTIVATION && producer != producers_.end() &&
            producer->second != segment.device && fetched.insert(root).second) {
          segment.copies_in.push_back(root);
        } else if (role == PAVO_ROLE_KV_POOL && node.op != pavo_op_kv_store) {
          segment.pools_read.push_back(input);
        } else if (role == PAVO_ROLE_STEP) {
          std::vector<TensorId>& steps = layouts_[segment.device].steps;
          if (std::find(steps.begin(), steps.end(), input) == steps.end()) {
            steps.push_back(input);
          }
        }
      }
      if (node.op == pavo_op_kv_store) {
        segment.stores.emplace_back(node.inputs[1], node.inputs[2]);
      }
      for (const TensorId output : node.outputs) {
        if (graph_.tensor(output).role == PAVO_ROLE_ACTIVATION) {
          producers_[graph_.storage(output)] = segment.device;
          fetched.insert(graph_.storage(output));
        }
      }
    }
    segments_.push_back(std::move(segment));
  }
}

// An activation lives on its producer from the producing node to the last reader there or the last
// segment that fetches it; on a fetching device from that segment's first node to its last reader.
void Program::plan_activations() {
  std::vector<std::map<TensorId, Lifetime>> lives(layouts_.size());
  const auto touch = [&](uint32_t device, TensorId root, uint32_t at) {
    const auto when = static_cast<int32_t>(at);
    auto [found, inserted] =
        lives[device].try_emplace(root, Lifetime{graph_.span_bytes(root), when, when});
    found->second.first = std::min(found->second.first, when);
    found->second.last = std::max(found->second.last, when);
  };
  for (const PreparedSegment& segment : segments_) {
    for (const TensorId root : segment.copies_in) {
      touch(producers_.at(root), root, segment.nodes.front());
      touch(segment.device, root, segment.nodes.front());
    }
    for (const uint32_t n : segment.nodes) {
      const Node& node = graph_.nodes()[n];
      for (const std::vector<TensorId>* list : {&node.inputs, &node.outputs}) {
        for (const TensorId id : *list) {
          if (id != kNoTensor && graph_.tensor(id).role == PAVO_ROLE_ACTIVATION) {
            touch(segment.device, graph_.storage(id), n);
          }
        }
      }
    }
  }
  const auto end = static_cast<uint32_t>(graph_.nodes().size());
  for (const TensorId output : outputs_) {
    touch(producers_.at(graph_.storage(output)), graph_.storage(output), end);
  }
  for (size_t d = 0; d < lives.size(); ++d) {
    std::vector<Lifetime> list;
    for (const auto& [root, life] : lives[d]) {
      list.push_back(life);
    }
    const MemoryPlan plan = plan_memory(list);
    size_t i = 0;
    for (const auto& [root, life] : lives[d]) {
      layouts_[d].offsets[root] = plan.offsets[i++];
    }
    layouts_[d].arena_bytes = plan.total_bytes;
  }
}

Status Program::make_step_buffers() {
  for (size_t d = 0; d < layouts_.size(); ++d) {
    DeviceLayout& layout = layouts_[d];
    for (const TensorId step : layout.steps) {
      layout.step_offsets[step] = layout.step_bytes;
      layout.step_bytes += pavo_align_up(graph_.span_bytes(step), kStepAlignment);
    }
    if (layout.step_bytes > 0) {
      PAVO_ASSIGN_OR_RETURN(
          layout.step_buffer, context_.devices[d]->create_buffer(layout.step_bytes));
      layout.step_staging.resize(static_cast<size_t>(layout.step_bytes));
    }
  }
  return Status();
}

Status Program::prepare_plans() {
  context_.activations.resize(context_.devices.size());
  context_.workspaces.resize(context_.devices.size());
  for (PreparedSegment& segment : segments_) {
    Device& device = *context_.devices[segment.device];
    PAVO_ASSIGN_OR_RETURN(segment.plan, device.create_plan(segment.view->get()));
    PAVO_RETURN_IF_ERROR(
        context_.workspaces[segment.device].reserve(device, segment.plan.info().workspace_bytes));
  }
  for (size_t d = 0; d < layouts_.size(); ++d) {
    PAVO_RETURN_IF_ERROR(
        context_.activations[d].reserve(*context_.devices[d], layouts_[d].arena_bytes));
  }
  // Weights are packed now, so that no step pays for it.
  for (PreparedSegment& segment : segments_) {
    PAVO_RETURN_IF_ERROR(bind_segment(segment));
  }
  return Status();
}

Result<pavo_binding> Program::bind_tensor(uint32_t device, TensorId id) {
  const Tensor& tensor = graph_.tensor(id);
  const DeviceLayout& layout = layouts_[device];
  switch (tensor.role) {
    case PAVO_ROLE_WEIGHT:
      return context_.weights->bind(*context_.devices[device], tensor);
    case PAVO_ROLE_KV_POOL: {
      const auto pool = context_.kv_pools.find(tensor.name);
      if (pool == context_.kv_pools.end()) {
        return Status(Code::kInternal, "no K/V pool '" + tensor.name + "'");
      }
      PAVO_ASSIGN_OR_RETURN(const Buffer* buffer, pool->second->replica(*context_.devices[device]));
      return pavo_binding{buffer->get(), 0};
    }
    case PAVO_ROLE_STEP:
      return pavo_binding{layout.step_buffer.get(), layout.step_offsets.at(id)};
    default: {
      const int64_t offset = layout.offsets.at(graph_.storage(id)) + tensor.view_offset;
      return pavo_binding{context_.activations[device].buffer().get(), offset};
    }
  }
}

Status Program::bind_segment(PreparedSegment& segment) {
  segment.bindings.clear();
  for (const TensorId id : segment.view->tensors()) {
    PAVO_ASSIGN_OR_RETURN(const pavo_binding binding, bind_tensor(segment.device, id));
    segment.bindings.push_back(binding);
  }
  return Status();
}

Status Program::set_step(TensorId tensor, std::span<const int32_t> values) {
  const Tensor& step = graph_.tensor(tensor);
  if (step.role != PAVO_ROLE_STEP || static_cast<int64_t>(values.size()) != step.shape.elements()) {
    return Status(
        Code::kInternal,
        "step tensor '" + step.name + "': expected " + std::to_string(step.shape.elements()) +
            " values, got " + std::to_string(values.size()));
  }
  step_values_[tensor].assign(values.begin(), values.end());
  return Status();
}

Status Program::upload_steps() {
  const TraceSpan span(context_.trace, "executor", "upload step tensors");
  for (size_t d = 0; d < layouts_.size(); ++d) {
    DeviceLayout& layout = layouts_[d];
    for (const auto& [step, offset] : layout.step_offsets) {
      const auto values = step_values_.find(step);
      if (values == step_values_.end()) {
        return Status(
            Code::kInternal, "step tensor '" + graph_.tensor(step).name + "' was never set");
      }
      std::memcpy(
          layout.step_staging.data() + offset,
          values->second.data(),
          values->second.size() * sizeof(int32_t));
    }
    if (layout.step_bytes > 0) {
      PAVO_RETURN_IF_ERROR(upload(
          {context_.devices[d], &layout.step_buffer},
          layout.step_staging.data(),
          0,
          layout.step_bytes));
    }
  }
  return Status();
}

Status Program::fetch_inputs(const PreparedSegment& segment, RunStats* stats) {
  Device& device = *context_.devices[segment.device];
  for (const TensorId root : segment.copies_in) {
    const uint32_t from = producers_.at(root);
    const int64_t bytes = graph_.span_bytes(root);
    TraceSpan span(context_.trace, "copy", "copy activation");
    span.arg("tensor", graph_.tensor(root).name);
    span.arg("from", device_label(from, *context_.devices[from]));
    span.arg("to", device_label(segment.device, device));
    span.arg("bytes", bytes);
    const CopyShape shape = {
        layouts_[from].offsets.at(root),
        layouts_[segment.device].offsets.at(root),
        bytes,
        1,
        bytes,
        bytes};
    PAVO_RETURN_IF_ERROR(transfer(
        {context_.devices[from], &context_.activations[from].buffer()},
        {&device, &context_.activations[segment.device].buffer()},
        {&shape, 1},
        context_.staging));
    stats->activation_bytes_moved += bytes;
  }
  for (const TensorId pool : segment.pools_read) {
    TraceSpan span(context_.trace, "copy", "refresh K/V rows");
    const int64_t before = stats->kv_bytes_moved;
    PAVO_RETURN_IF_ERROR(context_.kv_pools.at(graph_.tensor(pool).name)
                             ->refresh(device, context_.staging, &stats->kv_bytes_moved));
    span.arg("pool", graph_.tensor(pool).name);
    span.arg("to", device_label(segment.device, device));
    span.arg("bytes", stats->kv_bytes_moved - before);
    if (stats->kv_bytes_moved == before) {
      span.drop();
    }
  }
  return Status();
}

Status Program::run_segment(PreparedSegment& segment, RunStats* stats) {
  Device& device = *context_.devices[segment.device];
  PAVO_RETURN_IF_ERROR(fetch_inputs(segment, stats));
  PAVO_RETURN_IF_ERROR(bind_segment(segment));
  pavo_submit submit = {};
  submit.binding_count = static_cast<uint32_t>(segment.bindings.size());
  submit.bindings = segment.bindings.data();
  if (segment.plan.info().workspace_bytes > 0) {
    submit.workspace = {context_.workspaces[segment.device].buffer().get(), 0};
  }
  segment.submitted_ns = Trace::now_ns();
  {
    TraceSpan span(context_.trace, "executor", "submit");
    span.arg("device", device.id());
    span.arg("nodes", static_cast<int64_t>(segment.nodes.size()));
    span.arg("launches", int64_t{segment.plan.info().launches});
    PAVO_RETURN_IF_ERROR(device.run(segment.plan, submit));
  }
  for (const auto& [pool, slots] : segment.stores) {
    context_.kv_pools.at(graph_.tensor(pool).name)->stored(device, step_values_.at(slots));
  }
  return Status();
}

Result<RunStats> Program::run() {
  RunStats stats;
  TraceSpan step(context_.trace, "executor", "step");
  step.arg("tokens", int64_t{graph_.bucket().tokens});
  step.arg("kv_rows", graph_.bucket().kv_rows);
  const int64_t start = Trace::now_ns();
  PAVO_RETURN_IF_ERROR(upload_steps());
  for (PreparedSegment& segment : segments_) {
    PAVO_RETURN_IF_ERROR(run_segment(segment, &stats));
  }
  stats.host_ns = Trace::now_ns() - start;
  stats.launches = launches();
  {
    const TraceSpan wait(context_.trace, "executor", "wait");
    for (Device* device : context_.devices) {
      PAVO_RETURN_IF_ERROR(device->wait());
    }
  }
  stats.total_ns = Trace::now_ns() - start;
  if (context_.trace != nullptr) {
    trace_nodes(*context_.trace);
  }
  return stats;
}

void Program::trace_nodes(Trace& trace) {
  for (PreparedSegment& segment : segments_) {
    const auto times_ns = segment.plan.node_times_ns(static_cast<uint32_t>(segment.nodes.size()));
    trace_segment(
        {graph_, placement_, segment.device, segment.nodes, segment.submitted_ns}, times_ns, trace);
  }
}

Status Program::read_output(TensorId tensor, int64_t first, std::span<float> out) {
  const TensorId root = graph_.storage(tensor);
  const auto bytes = static_cast<int64_t>(out.size_bytes());
  const int64_t begin = first * static_cast<int64_t>(sizeof(float));
  if (std::find(outputs_.begin(), outputs_.end(), tensor) == outputs_.end() || first < 0 ||
      begin + bytes > graph_.span_bytes(tensor)) {
    return Status(Code::kInternal, "read of what is no output of the program");
  }
  const uint32_t device = producers_.at(root);
  const int64_t offset =
      layouts_[device].offsets.at(root) + graph_.tensor(tensor).view_offset + begin;
  const Buffer& buffer = context_.activations[device].buffer();
  if (buffer.host() != nullptr) {
    std::memcpy(out.data(), buffer.host() + offset, out.size_bytes());
    return Status();
  }
  return download({context_.devices[device], &buffer}, out.data(), offset, bytes);
}

int32_t Program::launches() const {
  int32_t launches = 0;
  for (const PreparedSegment& segment : segments_) {
    launches += segment.plan.info().launches;
  }
  return launches;
}

}  // namespace pavo
