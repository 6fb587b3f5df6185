// The groups of checks, by what they need: the file alone, the loaded file, an instance, a device.
#pragma once

#include <vector>

#include "tests/conformance/kit.h"
#include "tests/ops/family.h"

namespace pavo::conformance {

using test::all_ops;
using test::Axis;
using test::base_sizes;
using test::families_of;
using test::Family;
using test::Judge;
using test::OpName;
using test::Sizes;
using test::sizes_text;

std::vector<Check> file_checks();       // L0: nothing of the plugin runs
std::vector<Check> load_checks();       // L0: loading and the query
std::vector<Check> instance_checks();   // L1: options, instances, the device list
std::vector<Check> device_checks();     // L1: a device and its memory
std::vector<Check> copy_checks();       // L1: copies and timelines
std::vector<Check> predicate_checks();  // L2: query_nodes, per op
std::vector<Check> truth_checks();      // L2: what nodes compute, per op

}  // namespace pavo::conformance
