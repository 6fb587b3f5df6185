#include "llm/engine.h"

#include <algorithm>

#include "core/op_rules.h"
#include "core/program_trace.h"

namespace pavo::llm {
namespace {

// Prepared programs that are kept. One is small beside the weights; a chat needs about ten.
constexpr size_t kProgramsKept = 24;
constexpr int64_t kSmallestKvBucket = 256;

int32_t round_up(int32_t value, int32_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// Decode and drafts run unpadded; longer steps waste at most a few rows to share programs.
int32_t round_tokens(int32_t tokens, int32_t batch) {
  int32_t rounded = tokens;
  if (tokens > 64) {
    rounded = round_up(tokens, 32);
  } else if (tokens > 16) {
    rounded = round_up(tokens, 8);
  }
  return std::max(tokens, std::min(rounded, batch));
}

}  // namespace

struct Engine::StepData {
  std::vector<int32_t> ids, positions, row_seq, seq_rows, lengths, page_table, slots, output_rows;
};

Engine::Engine(std::unique_ptr<Model> model, std::vector<std::unique_ptr<Device>> devices)
    : model_(std::move(model)), devices_(std::move(devices)) {}

Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::create(
    const ModelSource& source,
    std::vector<std::unique_ptr<Device>> devices,
    const EngineOptions& options) {
  if (devices.empty()) {
    return Status(Code::kNoBackend, "no device to run on; `pavo doctor` tells why");
  }
  PAVO_ASSIGN_OR_RETURN(std::unique_ptr<Model> model, make_model(source));
  std::unique_ptr<Engine> engine(new Engine(std::move(model), std::move(devices)));
  PAVO_RETURN_IF_ERROR(engine->set_up(options));
  return engine;
}

Status Engine::set_up(const EngineOptions& options) {
  options_ = options;
  if (options_.context == 0) {
    options_.context = std::min(model_->info().context_length, kDefaultContext);
  }
  constexpr int64_t kMaxContext = int64_t{1} << 27;  // slots are int32 with room to spare
  if (options_.context < 1 || options_.context > kMaxContext || options_.batch < 1 ||
      options_.batch > 65536 || options_.sequences < 1 || options_.sequences > 65536) {
    return Status(
        Code::kInvalidArgument,
        "expected a context of 1 to " + std::to_string(kMaxContext) +
            " tokens, a batch of 1 to 65536 and 1 to 65536 sequences");
  }
  const int64_t per_sequence = (options_.context + PAVO_KV_PAGE_ROWS - 1) / PAVO_KV_PAGE_ROWS;
  graph_options_.k_type = options_.k_type;
  graph_options_.v_type = options_.v_type;
  graph_options_.pages_per_sequence = per_sequence;
  graph_options_.pages = per_sequence * options_.sequences;
  graph_options_.exact = options_.exact;
  if (graph_options_.pages * PAVO_KV_PAGE_ROWS > INT32_MAX) {
    return Status(Code::kInvalidArgument, "context times sequences exceeds 2^31 K/V rows");
  }
  cache_ = std::make_unique<KvCache>(graph_options_.pages, options_.context);
  weights_ = std::make_unique<WeightStore>(model_->weights());
  context_.weights = weights_.get();
  context_.trace = options_.trace;
  for (const auto& device : devices_) {
    const auto index = static_cast<uint32_t>(context_.devices.size());
    context_.devices.push_back(device.get());
    if (context_.trace != nullptr) {
      context_.trace->name_track(Trace::device_track(index), device_label(index, *device));
    }
  }
  for (const KvPoolSpec& spec : model_->kv_pools(graph_options_)) {
    pavo_kv_layout layout;
    if (pavo_kv_layout_init(spec.type, spec.shape[3], &layout) != 0) {
      return Status(
          Code::kInvalidArgument,
          std::string("expected a K/V cache type (f32 f16 bf16 q8_0 ...), got ") +
              pavo_type_name(spec.type));
    }
    context_.kv_pools.emplace(
        spec.name, std::make_unique<KvPool>(spec.name, spec.type, spec.shape));
  }
  return Status();
}

int64_t Engine::kv_bytes_per_token() const {
  int64_t bytes = 0;
  for (const auto& [name, pool] : context_.kv_pools) {
    bytes += pool->size_bytes() / (graph_options_.pages * PAVO_KV_PAGE_ROWS);
  }
  return bytes;
}

Result<SequenceId> Engine::create_sequence() {
  if (alive_ == options_.sequences) {
    return Status(
        Code::kOutOfMemory, "all " + std::to_string(options_.sequences) + " sequences are in use");
  }
  ++alive_;
  return cache_->create();
}

void Engine::release_sequence(SequenceId sequence) {
  if (cache_->contains(sequence)) {
    cache_->release(sequence);
    --alive_;
  }
}

Result<Engine::Prepared*> Engine::prepare(const Bucket& bucket) {
  for (auto it = prepared_.begin(); it != prepared_.end(); ++it) {
    if (it->bucket == bucket) {
      prepared_.splice(prepared_.begin(), prepared_, it);
      return &prepared_.front();
    }
  }
  PAVO_ASSIGN_OR_RETURN(ModelGraph built, model_->build(bucket, graph_options_));
  PAVO_ASSIGN_OR_RETURN(
      std::unique_ptr<Program> program,
      Program::create(std::move(built.graph), {built.logits}, options_.placement, context_));
  prepared_.push_front({bucket, built.steps, built.logits, std::move(program)});
  ++stats_.programs_made;
  if (prepared_.size() > kProgramsKept) {
    prepared_.pop_back();
  }
  return &prepared_.front();
}

Bucket Engine::bucket_for(std::span<const SequenceInput> inputs, int32_t outputs) const {
  Bucket bucket;
  int64_t tokens = 0;
  int64_t longest = 0;
  for (const SequenceInput& input : inputs) {
    const auto count = static_cast<int64_t>(input.tokens.size());
    tokens += count;
    longest = std::max(longest, cache_->length(input.sequence) + count);
  }
  const bool all = outputs == tokens;
  bucket.tokens = round_tokens(static_cast<int32_t>(tokens), options_.batch);
  bucket.sequences = static_cast<int32_t>(inputs.size());
  // Logits of no row cost one row; of every row they need no gather.
  bucket.outputs = all ? bucket.tokens : std::max(outputs, 1);
  bucket.kv_rows = kSmallestKvBucket;
  while (bucket.kv_rows < longest) {
    bucket.kv_rows *= 2;
  }
  return bucket;
}

Status Engine::check_inputs(std::span<const SequenceInput> inputs) const {
  int64_t tokens = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const SequenceInput& input = inputs[i];
    tokens += static_cast<int64_t>(input.tokens.size());
    if (!cache_->contains(input.sequence) || input.tokens.empty()) {
      return Status(Code::kInvalidArgument, "expected live sequences with at least one token each");
    }
    for (size_t j = 0; j < i; ++j) {
      if (inputs[j].sequence == input.sequence) {
        return Status(Code::kInvalidArgument, "a sequence may appear once in a step");
      }
    }
    for (const int32_t token : input.tokens) {
      if (token < 0 || token >= model_->info().vocab_size) {
        return Status(
            Code::kInvalidArgument,
            "expected token ids in 0.." + std::to_string(model_->info().vocab_size - 1) + ", got " +
                std::to_string(token));
      }
    }
  }
  if (tokens == 0 || tokens > options_.batch) {
    return Status(
        Code::kInvalidArgument,
        "expected 1 to " + std::to_string(options_.batch) + " tokens in a step, got " +
            std::to_string(tokens));
  }
  return Status();
}

Engine::StepData Engine::make_step_data(
    std::span<const SequenceInput> inputs, const Bucket& bucket) const {
  StepData data;
  data.page_table.assign(inputs.size() * graph_options_.pages_per_sequence, -1);
  data.seq_rows.push_back(0);
  for (size_t s = 0; s < inputs.size(); ++s) {
    const SequenceInput& input = inputs[s];
    const int64_t before = cache_->length(input.sequence);
    for (size_t i = 0; i < input.tokens.size(); ++i) {
      const int64_t row = before + static_cast<int64_t>(i);
      const bool last = i + 1 == input.tokens.size();
      if (input.outputs == Outputs::kAll || (input.outputs == Outputs::kLast && last)) {
        data.output_rows.push_back(static_cast<int32_t>(data.ids.size()));
      }
      data.ids.push_back(input.tokens[i]);
      data.positions.push_back(static_cast<int32_t>(row));
      data.row_seq.push_back(static_cast<int32_t>(s));
      data.slots.push_back(cache_->slot(input.sequence, row));
    }
    data.seq_rows.push_back(static_cast<int32_t>(data.ids.size()));
    data.lengths.push_back(
        static_cast<int32_t>(before + static_cast<int64_t>(input.tokens.size())));
    const std::vector<int32_t>& pages = cache_->pages(input.sequence);
    std::copy(
        pages.begin(),
        pages.end(),
        data.page_table.begin() + static_cast<int64_t>(s) * graph_options_.pages_per_sequence);
  }
  // Padding rows store nothing and attend to nothing.
  const auto padded = static_cast<size_t>(bucket.tokens);
  data.ids.resize(padded, 0);
  data.positions.resize(padded, 0);
  data.row_seq.resize(padded, -1);
  data.slots.resize(padded, -1);
  data.output_rows.resize(static_cast<size_t>(bucket.outputs), 0);
  return data;
}

Result<std::vector<float>> Engine::step(std::span<const SequenceInput> inputs) {
  const int64_t start = Trace::now_ns();
  PAVO_RETURN_IF_ERROR(check_inputs(inputs));
  int32_t wanted = 0;
  for (const SequenceInput& input : inputs) {
    const auto count = static_cast<int32_t>(input.tokens.size());
    wanted += input.outputs == Outputs::kAll ? count : input.outputs == Outputs::kLast ? 1 : 0;
  }
  for (const SequenceInput& input : inputs) {
    PAVO_RETURN_IF_ERROR(
        cache_->reserve(input.sequence, static_cast<int64_t>(input.tokens.size())));
  }
  const Bucket bucket = bucket_for(inputs, wanted);
  PAVO_ASSIGN_OR_RETURN(Prepared * prepared, prepare(bucket));
  const StepData data = make_step_data(inputs, bucket);
  const StepTensors& steps = prepared->steps;
  Program& program = *prepared->program;
  PAVO_RETURN_IF_ERROR(program.set_step(steps.ids, data.ids));
  PAVO_RETURN_IF_ERROR(program.set_step(steps.positions, data.positions));
  PAVO_RETURN_IF_ERROR(program.set_step(steps.row_seq, data.row_seq));
  PAVO_RETURN_IF_ERROR(program.set_step(steps.seq_rows, data.seq_rows));
  PAVO_RETURN_IF_ERROR(program.set_step(steps.lengths, data.lengths));
  PAVO_RETURN_IF_ERROR(program.set_step(steps.page_table, data.page_table));
  PAVO_RETURN_IF_ERROR(program.set_step(steps.slots, data.slots));
  if (steps.output_rows != kNoTensor) {
    PAVO_RETURN_IF_ERROR(program.set_step(steps.output_rows, data.output_rows));
  }
  const int64_t run = Trace::now_ns();
  PAVO_ASSIGN_OR_RETURN(const RunStats stats, program.run());
  const int64_t ran = Trace::now_ns();
  std::vector<float> logits(static_cast<size_t>(wanted * model_->info().vocab_size));
  if (wanted > 0) {
    PAVO_RETURN_IF_ERROR(program.read_output(prepared->logits, 0, logits));
  }
  count(stats, run - start, Trace::now_ns() - ran);
  for (const SequenceInput& input : inputs) {
    cache_->commit(input.sequence, static_cast<int64_t>(input.tokens.size()));
  }
  return logits;
}

Result<std::vector<float>> Engine::decode(
    SequenceId sequence,
    std::span<const int32_t> tokens,
    Outputs outputs,
    const std::function<bool()>& keep_going) {
  std::vector<float> logits;
  for (size_t begin = 0; begin < tokens.size();) {
    if (keep_going && !keep_going()) {
      return Status(Code::kCancelled, "stopped between two steps of the prompt");
    }
    const size_t count = std::min(tokens.size() - begin, static_cast<size_t>(options_.batch));
    const bool last = begin + count == tokens.size();
    const Outputs wanted = outputs == Outputs::kAll || last ? outputs : Outputs::kNone;
    const SequenceInput input{sequence, tokens.subspan(begin, count), wanted};
    PAVO_ASSIGN_OR_RETURN(const std::vector<float> rows, step({&input, 1}));
    logits.insert(logits.end(), rows.begin(), rows.end());
    begin += count;
  }
  return logits;
}

// What the step took before and after the run of its program is the host's too.
void Engine::count(const RunStats& stats, int64_t before_ns, int64_t after_ns) {
  ++stats_.steps;
  stats_.last = stats;
  stats_.host_ns += before_ns + stats.host_ns;
  stats_.total_ns += before_ns + stats.total_ns + after_ns;
  stats_.kv_bytes_moved += stats.kv_bytes_moved;
  stats_.activation_bytes_moved += stats.activation_bytes_moved;
}

Status Engine::warm_up() {
  Bucket bucket;
  bucket.kv_rows = kSmallestKvBucket;
  const Result<Prepared*> prepared = prepare(bucket);
  return prepared.status();
}

Result<PlacementSummary> Engine::placement_summary() {
  Bucket bucket;
  bucket.kv_rows = kSmallestKvBucket;
  PAVO_ASSIGN_OR_RETURN(const Prepared* prepared, prepare(bucket));
  return summarize(prepared->program->graph(), prepared->program->placement(), context_.devices);
}

Result<int32_t> Engine::launches_per_token() {
  Bucket bucket;
  bucket.kv_rows = kSmallestKvBucket;
  PAVO_ASSIGN_OR_RETURN(const Prepared* prepared, prepare(bucket));
  return prepared->program->launches();
}

}  // namespace pavo::llm
