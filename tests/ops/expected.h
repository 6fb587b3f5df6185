// The result of one output, element by element, and how far a kernel may be from it.
#pragma once

#include <string>
#include <vector>

#include "tests/ops/op_case.h"

namespace pavo::test {

struct Expected {
  std::vector<double> values;
  std::vector<double> tolerances;

  void add(double value, double tolerance) {
    values.push_back(value);
    tolerances.push_back(tolerance);
  }
};

// What is wrong with an output: a line for each of the first wrong elements and their number, or
// that bytes between its rows were written. Empty if nothing is.
std::vector<std::string> compare_output(
    const HostTensor& before, const HostTensor& after, const Expected& expected);

}  // namespace pavo::test
