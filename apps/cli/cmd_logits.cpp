// pavo logits: the model's raw output for given tokens, for comparison with other implementations.
#include <memory>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "apps/cli/command.h"
#include "apps/cli/interrupt.h"
#include "apps/cli/io.h"
#include "apps/cli/progress.h"
#include "apps/cli/session.h"
#include "llm/safetensors.h"

namespace pavo::cli {

namespace {

struct LogitsFlags {
  ModelFlags model;
  std::string tokens;
  std::string out;
};

// One JSON array of ids in 0..vocab_size-1.
Result<std::vector<int32_t>> read_ids(const std::string& path, int64_t vocab_size) {
  PAVO_ASSIGN_OR_RETURN(const std::string text, read_all(path));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  const auto fault = [&path](const std::string& what) {
    return Status(
        Code::kInvalidFile, path + ": expected one JSON array of token ids, found " + what);
  };
  if (!json.is_array()) {
    return fault(json.is_discarded() ? "no valid JSON" : json.type_name());
  }
  if (json.empty()) {
    return fault("an empty one");
  }
  std::vector<int32_t> ids;
  for (const nlohmann::json& item : json) {
    if (!item.is_number_integer() || item.get<int64_t>() < 0 || item.get<int64_t>() >= vocab_size) {
      return fault(
          item.dump() + " at index " + std::to_string(ids.size()) + " (the model has ids 0.." +
          std::to_string(vocab_size - 1) + ")");
    }
    ids.push_back(item.get<int32_t>());
  }
  return ids;
}

// Stops after the step in which Ctrl-C comes. Not beyond: writing to a pipe can take for ever.
Result<std::vector<float>> compute(
    llm::Engine& engine, const std::vector<int32_t>& ids, bool quiet) {
  PAVO_ASSIGN_OR_RETURN(const llm::SequenceId sequence, engine.create_sequence());
  Progress progress("logits", quiet);
  const InterruptScope interrupt;
  return engine.decode(sequence, ids, llm::Outputs::kAll, [&] {
    progress.update(engine.length(sequence), static_cast<int64_t>(ids.size()));
    return !InterruptScope::requested();
  });
}

Status logits(const LogitsFlags& flags) {
  PAVO_RETURN_IF_ERROR(check_output("--trace", flags.model.trace_file, {flags.tokens}));
  PAVO_RETURN_IF_ERROR(check_output("--out", flags.out, {flags.model.model, flags.tokens}));
  PAVO_ASSIGN_OR_RETURN(Session session, open_session(flags.model));
  PAVO_ASSIGN_OR_RETURN(const auto model, llm::make_model(*session.source));
  const int64_t vocab_size = model->info().vocab_size;
  PAVO_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, read_ids(flags.tokens, vocab_size));
  const auto count = static_cast<int64_t>(ids.size());
  // The trace exists by now.
  PAVO_RETURN_IF_ERROR(check_output("--out", flags.out, {flags.model.trace_file}));
  PAVO_RETURN_IF_ERROR(start_engine(flags.model, {count, count}, &session));
  PAVO_ASSIGN_OR_RETURN(
      const std::vector<float> values, compute(*session.engine, ids, flags.model.settings.quiet));
  return close_trace(
      flags.model,
      llm::write_safetensors_f32(flags.out, "logits", count, vocab_size, values),
      &session);
}

}  // namespace

void add_logits(CLI::App* app, Action* action) {
  CLI::App* command = app->add_subcommand("logits", "write the logits of given tokens to a file");
  const auto flags = std::make_shared<LogitsFlags>();
  command->add_option("--tokens", flags->tokens, "JSON array of token ids; - is standard input")
      ->required()
      ->type_name("FILE.json");
  command->add_option("--out", flags->out, "result: tensor `logits`, F32 [tokens, vocabulary]")
      ->required()
      ->type_name("FILE.safetensors");
  add_model_options(command, &flags->model);
  command->callback([flags, action] { *action = [flags] { return logits(*flags); }; });
}

}  // namespace pavo::cli
