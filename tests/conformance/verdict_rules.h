// What every verdict must look like, whatever it says.
#pragma once

#include <string>

#include "tests/conformance/kit.h"
#include "tests/ops/op_case.h"

namespace pavo::conformance {

// A verdict full of a pattern, so that what was not written shows.
pavo_verdict poisoned_verdict();

// A verdict for a node with that many operands.
void check_verdict(Context& context, const pavo_verdict& verdict, size_t operands);

// "accept_slow, kernel norm_rms": decision and what goes with it, for comparing two answers.
std::string verdict_text(const pavo_verdict& verdict);

// Asks about the case's one node; throws StatusError if the call fails.
pavo_verdict ask(const test::Backend& backend, const test::OpCase& test_case);

// The reason of a refusal, in a word: "type", "shape_range".
std::string reason_name(int32_t reason);

}  // namespace pavo::conformance
