// Which instruction sets Highway may dispatch to on this machine.
#pragma once

#include <string>
#include <string_view>

namespace pavo::cpu {

// Comma list, best first: "AVX3,AVX2,SSE4,SCALAR".
std::string simd_target_names();

// True for the name of one of these.
bool has_simd_target(std::string_view name);

// Dispatches to no better target than the named one from now on, in the whole process: kernels look
// their target up at every launch. has_simd_target(name). [any]
void limit_simd_target(std::string_view name);

}  // namespace pavo::cpu
