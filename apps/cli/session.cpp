#include "apps/cli/session.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

#include <sys/resource.h>

#include "apps/cli/io.h"
#include "core/backends.h"
#include "core/log.h"
#include "core/registry.h"

namespace pavo::cli {

namespace {

const std::chrono::steady_clock::time_point kProgramStart = std::chrono::steady_clock::now();

double ms_between(
    std::chrono::steady_clock::time_point from, std::chrono::steady_clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

FallbackPolicy fallback_policy(const std::string& name) {
  return name == "allow"   ? FallbackPolicy::kAllow
         : name == "error" ? FallbackPolicy::kError
                           : FallbackPolicy::kWarn;
}

// The context that was asked for, else one with room for the job, up to what the model knows.
Result<int64_t> choose_context(
    const Setting<int64_t>& asked, int64_t trained, const TokensNeeded& needed) {
  const int64_t context = asked.value != 0
                              ? asked.value
                              : std::min(trained, std::max(needed.most, llm::kDefaultContext));
  if (needed.least > context) {
    return Status(
        Code::kInvalidArgument,
        "the prompt has " + std::to_string(needed.least) + " tokens, but the context holds " +
            std::to_string(context) +
            "; shorten the prompt or set a larger context with -c (the model was trained for " +
            std::to_string(trained) + ")");
  }
  if (context > trained) {
    log_warn(
        "a context of " + std::to_string(context) + " tokens (" + asked.source +
        ") is beyond the " + std::to_string(trained) +
        " that the model was trained for; positions past that are extrapolated, and the text is "
        "likely to get worse there");
  }
  return context;
}

Result<llm::EngineOptions> engine_options(const ModelFlags& flags, const Config& config) {
  llm::EngineOptions options;
  options.batch = flags.batch;
  options.exact = flags.exact;
  const std::optional<KvTypes> types = kv_types_of(config.kv_type.value);
  if (!types) {
    return Status(Code::kInternal, "kv_type was not checked: " + config.kv_type.value);
  }
  options.k_type = types->k;
  options.v_type = types->v;
  options.placement.fallback = fallback_policy(config.fallback.value);
  for (const std::string& text : config.place.value) {
    PAVO_ASSIGN_OR_RETURN(PlaceRule rule, parse_place_rule(text));
    options.placement.rules.push_back(std::move(rule));
  }
  return options;
}

void note_placement(const Session& session, bool quiet) {
  if (!quiet) {
    note(to_line(session.placement));
  }
  if (session.config.fallback.value != "warn") {
    return;
  }
  for (const RefusalClass& refusal : session.placement.refusals) {
    log_warn(
        refusal.device + " refuses " + std::to_string(refusal.nodes) + " x " + refusal.op + " (" +
        refusal.text + "), first " + refusal.first_node + "; runs on " + refusal.runs_on);
  }
}

}  // namespace

void add_model_options(CLI::App* command, ModelFlags* flags) {
  command->add_option("-m,--model", flags->model, "GGUF file or Hub directory")
      ->required()
      ->type_name("PATH");
  add_run_settings(command, &flags->settings);
  command->add_option("-b,--batch", flags->batch, "most tokens of a prompt in one step")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      ->add_option(
          "--attention",
          flags->attention,
          "auto: one node if the device takes it; composed: simpler ones")
      ->check(CLI::IsMember({"auto", "composed"}))
      ->capture_default_str();
  command->add_flag("--exact", flags->exact, "no int8 activations anywhere");
  command
      ->add_option(
          "--trace",
          flags->trace_file,
          "write what the executor does and when, as JSON for Perfetto or chrome://tracing; GPU "
          "plugins then time each node, so steps take longer")
      ->type_name("FILE");
  add_common_settings(command, &flags->settings);
}

std::chrono::steady_clock::time_point Phases::start() {
  return kProgramStart;
}

void Phases::end(const std::string& name) {
  const auto now = std::chrono::steady_clock::now();
  ms_.emplace_back(name, ms_between(last_, now));
  last_ = now;
}

double Phases::since_start_ms() const {
  return ms_between(kProgramStart, std::chrono::steady_clock::now());
}

Result<Session> open_session(const ModelFlags& flags) {
  if (flags.attention == "composed") {
    return Status(
        Code::kInvalidArgument,
        "--attention composed: expected auto; this build has no composed attention yet");
  }
  PAVO_RETURN_IF_ERROR(check_output("--trace", flags.trace_file, {flags.model}));
  Session session;
  PAVO_ASSIGN_OR_RETURN(session.config, load_settings(flags.settings));
  session.phases.end("settings");
  PAVO_ASSIGN_OR_RETURN(llm::ModelSource source, llm::ModelSource::open(flags.model));
  session.source = std::make_unique<llm::ModelSource>(std::move(source));
  if (!flags.trace_file.empty()) {
    PAVO_ASSIGN_OR_RETURN(session.trace, Trace::create(flags.trace_file));
  }
  session.phases.end("open");
  return session;
}

Status start_engine(const ModelFlags& flags, const TokensNeeded& needed, Session* session) {
  const Config& config = session->config;
  PAVO_ASSIGN_OR_RETURN(llm::EngineOptions options, engine_options(flags, config));
  options.trace = session->trace.get();
  PAVO_ASSIGN_OR_RETURN(const auto model, llm::make_model(*session->source));
  PAVO_ASSIGN_OR_RETURN(
      options.context, choose_context(config.context, model->info().context_length, needed));
  watch_plugins(config);
  const Registry registry = Registry::discover(registry_options(config));
  for (const std::string& notice : registry.report().notices()) {
    log_warn(notice);
  }
  BackendRequest request = backend_request(config);
  request.node_timings = session->trace != nullptr;
  PAVO_ASSIGN_OR_RETURN(auto devices, open_devices(registry, request));
  session->phases.end("devices");
  PAVO_ASSIGN_OR_RETURN(
      session->engine, llm::Engine::create(*session->source, std::move(devices), options));
  PAVO_RETURN_IF_ERROR(session->engine->warm_up());
  PAVO_ASSIGN_OR_RETURN(session->placement, session->engine->placement_summary());
  session->phases.end("weights and plan");
  note_placement(*session, flags.settings.quiet);
  return Status();
}

Status close_trace(const ModelFlags& flags, Status result, Session* session) {
  if (session->trace == nullptr) {
    return result;
  }
  const Status closed = session->trace->finish();
  if (closed.ok() && !flags.settings.quiet) {
    note("trace: " + flags.trace_file);
  }
  return result.ok() ? closed : result;
}

int64_t peak_memory_bytes() {
  struct rusage usage = {};
  return getrusage(RUSAGE_SELF, &usage) == 0 ? int64_t{usage.ru_maxrss} * 1024 : 0;
}

std::string phases_text(const Phases& phases) {
  std::string text;
  for (const auto& [name, ms] : phases.ms()) {
    std::array<char, 96> part{};
    std::snprintf(
        part.data(), part.size(), "%s%s %.1f", text.empty() ? "" : ", ", name.c_str(), ms);
    text += part.data();
  }
  return text;
}

}  // namespace pavo::cli
