// Which instruction sets Highway may dispatch to on this machine.
#pragma once

#include <string>

namespace pavo::cpu {

// Comma list, best first: "AVX3,AVX2,SSE4,SCALAR".
std::string simd_target_names();

}  // namespace pavo::cpu
