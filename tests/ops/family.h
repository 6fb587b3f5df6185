// Cases of every op, by families: a family fixes types and parameters and leaves the sizes open, so
// that the conformance kit can go around every bound that a plugin declares. Those of an op stand
// in tests/ops/<op>_case.cpp, in one function, <op>_families().
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/ops/expected.h"
#include "tests/ops/op_case.h"
#include "tests/random.h"

namespace pavo::test {

// A size of a case. Values are multiples of `multiple` (a block of the weight type), `least` at
// least.
struct Axis {
  const char* name;
  int64_t base;  // what it is while others are varied
  int64_t most;  // larger ones would take too long
  int64_t multiple = 1;
  int64_t least = 1;
};

using Sizes = std::vector<int64_t>;

// A line for each thing that is wrong with the outputs of a run that went well.
using Judge = std::function<std::vector<std::string>(const OpRun& run)>;

struct Family {
  std::string name;  // "q4_0, bias"
  std::vector<Axis> axes;
  std::function<OpCase(Random& random, const Sizes& sizes)> make;
  // Works out the result of a case, which takes a while, and gives what says what is wrong with the
  // outputs of a run; the case must outlive it.
  std::function<Judge(const OpCase& test_case)> judge;
  // The lengths of the case in its K/V cache, for the range of a verdict; 0: it has none.
  std::function<int64_t(const Sizes& sizes)> kv_rows;
  int samples = 20;  // cases with one size changed
  int mixtures = 4;  // cases with all sizes changed
};

// Bytes behind each row where a family has gaps: no multiple of a vector.
inline constexpr int64_t kFamilyGap = 20;

// The outputs of a case, in order, as the formula of ops.inc has them.
using Expectation = std::function<std::vector<Expected>(const OpCase& test_case)>;
// Compares every output with the formula.
std::function<Judge(const OpCase& test_case)> judge_by(const Expectation& expectation);
// Of an op with one output.
Expectation one(Expected (*formula)(const OpCase& test_case));

std::string type_text(int32_t type);

// Every op of ops.inc has some: one without is an error of the linker.
std::vector<Family> families_of(int32_t op);

struct OpName {
  int32_t op;
  const char* name;
};
const std::vector<OpName>& all_ops();

// "T=3 N=5 K=64".
std::string sizes_text(const Family& family, const Sizes& sizes);
Sizes base_sizes(const Family& family);

}  // namespace pavo::test
