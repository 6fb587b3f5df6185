// Which instruction sets Highway may dispatch to on this machine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace pavo::cpu {

// Comma list, best first: "AVX3,AVX2,SSE4,SCALAR".
std::string simd_target_names();

// True for the name of one of these.
bool has_simd_target(std::string_view name);

// Dispatches to no better target than the named one from now on, in the whole process: kernels look
// their target up at every launch. Below the machine's best target VNNI is off, too.
// has_simd_target(name). [any]
void limit_simd_target(std::string_view name);

// True if vectors of 32 or 64 bytes may multiply bytes (vpdpbusd), which Highway's targets of this
// version do not tell. [any]
bool has_vnni(int64_t vector_bytes);

// For tests: whether has_vnni may be true where the machine has it. [any]
void allow_vnni(bool allowed);

}  // namespace pavo::cpu
