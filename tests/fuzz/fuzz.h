// What each fuzz target provides. The same target runs in two ways: under libFuzzer (CMake option
// PAVO_FUZZ), and under smoke_main.cpp, which feeds it a fixed set of mutations in every build.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

// libFuzzer's entry point; its name is fixed.
extern "C" int LLVMFuzzerTestOneInput(  // NOLINT(readability-identifier-naming)
    const uint8_t* data,
    size_t size);

namespace pavo::fuzz {

// Well-formed inputs to start from.
std::vector<std::vector<uint8_t>> seeds();

// Ends the run, in any build type, when something that must hold does not.
inline void require(bool holds, const char* what) {
  if (!holds) {
    std::fprintf(stderr, "fuzz: does not hold: %s\n", what);
    std::abort();
  }
}

}  // namespace pavo::fuzz
