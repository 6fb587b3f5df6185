// From flags to an engine that is ready to run, with the time of each phase.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "apps/cli/settings.h"
#include "core/placement.h"
#include "core/status.h"
#include "core/trace.h"
#include "llm/engine.h"
#include "llm/model_file.h"

namespace pavo::cli {

// Options of every command that runs a model.
struct ModelFlags {
  std::string model;
  int32_t batch = 512;
  bool exact = false;
  std::string attention = "auto";
  std::string trace_file;  // empty: no trace
  SettingFlags settings;
};
void add_model_options(CLI::App* command, ModelFlags* flags);

// Names and durations, in order; the first begins when the program starts.
class Phases {
 public:
  // Ends the phase that began at the last call.
  void end(const std::string& name);
  const std::vector<std::pair<std::string, double>>& ms() const { return ms_; }
  double since_start_ms() const;

 private:
  std::chrono::steady_clock::time_point last_ = start();
  std::vector<std::pair<std::string, double>> ms_;

  static std::chrono::steady_clock::time_point start();
};

// Destroyed in reverse order: the engine before the file that its weights lie in.
struct Session {
  Config config;
  Phases phases;
  std::unique_ptr<llm::ModelSource> source;
  std::unique_ptr<Trace> trace;  // with --trace
  std::unique_ptr<llm::Engine> engine;
  PlacementSummary placement;
};

// Reads the settings and opens the model file; no engine yet.
Result<Session> open_session(const ModelFlags& flags);

// Tokens that the caller will put into a sequence: at least, and at most.
struct TokensNeeded {
  int64_t least = 1;
  int64_t most = 1;
};

// Chooses the context, finds plugins, opens devices, packs the weights. Notes the placement on
// standard error, and warns of a context beyond the model's. kInvalidArgument if the context cannot
// hold needed.least.
Status start_engine(const ModelFlags& flags, const TokensNeeded& needed, Session* session);

// Closes the trace, if there is one. The command's own failure comes before the trace's.
Status close_trace(const ModelFlags& flags, Status result, Session* session);

// The most memory the process held, in bytes; 0 if the system does not say.
int64_t peak_memory_bytes();

// Parts in milliseconds: "open 3.1, settings 0.4, ...".
std::string phases_text(const Phases& phases);

}  // namespace pavo::cli
