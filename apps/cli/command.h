// The subcommands. Each add_* declares one and its options; parsing stores what to do in *action.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "core/status.h"

namespace pavo::cli {

// kCancelled: the user interrupted it, after all there is was printed.
using Action = std::function<Status()>;

void add_run(CLI::App* app, Action* action);
void add_logits(CLI::App* app, Action* action);
void add_tokenize(CLI::App* app, Action* action);
void add_info(CLI::App* app, Action* action);
void add_doctor(CLI::App* app, Action* action);
void add_bench(CLI::App* app, Action* action);
void add_config(CLI::App* app, Action* action);
void add_conformance(CLI::App* app, Action* action);

}  // namespace pavo::cli
