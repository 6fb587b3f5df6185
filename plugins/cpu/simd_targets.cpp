// The few functions of libhwy that run-time dispatch calls. Debian has libhwy only as a shared
// object, and a plugin takes nothing but glibc from the system.
#include "plugins/cpu/simd_targets.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>

#include <hwy/highway.h>
#include <hwy/targets.h>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace pavo::cpu {
namespace {

#if defined(__x86_64__)

struct CpuidBits {
  uint32_t leaf1_ecx = 0;
  uint32_t leaf7_ebx = 0;
  uint32_t leaf7_ecx = 0;
  uint32_t leaf7_1_eax = 0;
  uint32_t extended_ecx = 0;
  uint64_t xcr0 = 0;  // register state that the system saves
};

CpuidBits read_cpuid() {
  CpuidBits bits;
  uint32_t eax = 0;
  uint32_t ebx = 0;
  uint32_t ecx = 0;
  uint32_t edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0) {
    bits.leaf1_ecx = ecx;
  }
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) != 0) {
    bits.leaf7_ebx = ebx;
    bits.leaf7_ecx = ecx;
  }
  if (__get_cpuid_count(7, 1, &eax, &ebx, &ecx, &edx) != 0) {
    bits.leaf7_1_eax = eax;
  }
  if (__get_cpuid(0x80000001U, &eax, &ebx, &ecx, &edx) != 0) {
    bits.extended_ecx = ecx;
  }
  constexpr uint32_t kOsxsave = 1U << 27;
  if ((bits.leaf1_ecx & kOsxsave) != 0) {
    uint32_t low = 0;
    uint32_t high = 0;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    bits.xcr0 = (static_cast<uint64_t>(high) << 32) | low;
  }
  return bits;
}

constexpr uint32_t bit(int index) {
  return 1U << index;
}

constexpr bool has(uint32_t value, uint32_t mask) {
  return (value & mask) == mask;
}

int64_t detect_targets() {
  const CpuidBits bits = read_cpuid();
  int64_t targets = HWY_SCALAR | HWY_EMU128;
  // Leaf 1 ecx: ssse3 9, pclmul 1, sse4.1 19, sse4.2 20, aes 25; fma 12, avx 28, f16c 29.
  if (!has(bits.leaf1_ecx, bit(9))) {
    return targets;
  }
  targets |= HWY_SSSE3;
  if (!has(bits.leaf1_ecx, bit(1) | bit(19) | bit(20) | bit(25))) {
    return targets;
  }
  targets |= HWY_SSE4;
  // Leaf 7 ebx: bmi1 3, avx2 5, bmi2 8. Extended ecx: lzcnt 5. xcr0: xmm 1, ymm 2.
  if (!has(bits.leaf1_ecx, bit(12) | bit(28) | bit(29)) ||
      !has(bits.leaf7_ebx, bit(3) | bit(5) | bit(8)) || !has(bits.extended_ecx, bit(5)) ||
      (bits.xcr0 & 0x6) != 0x6) {
    return targets;
  }
  targets |= HWY_AVX2;
  // Leaf 7 ebx: avx512 f 16, dq 17, cd 28, bw 30, vl 31. xcr0: masks and zmm 5-7.
  if (!has(bits.leaf7_ebx, bit(16) | bit(17) | bit(28) | bit(30) | bit(31)) ||
      (bits.xcr0 & 0xe0) != 0xe0) {
    return targets;
  }
  targets |= HWY_AVX3;
  // Leaf 7 ecx: vbmi 1, vbmi2 6, gfni 8, vaes 9, vpclmul 10, vnni 11, bitalg 12, popcnt 14.
  if (has(bits.leaf7_ecx,
          bit(1) | bit(6) | bit(8) | bit(9) | bit(10) | bit(11) | bit(12) | bit(14))) {
    targets |= HWY_AVX3_DL;
  }
  return targets;
}

bool detect_vnni(int64_t vector_bytes) {
  const CpuidBits bits = read_cpuid();
  const int64_t targets = detect_targets();
  // Leaf 7 ecx: avx512 vnni 11. Leaf 7.1 eax: avx vnni 4.
  return vector_bytes == 64 ? (targets & HWY_AVX3) != 0 && has(bits.leaf7_ecx, bit(11))
                            : (targets & HWY_AVX2) != 0 && has(bits.leaf7_1_eax, bit(4));
}

#else

bool detect_vnni(int64_t /*vector_bytes*/) {
  return false;
}

int64_t detect_targets() {
  return HWY_STATIC_TARGET | HWY_SCALAR | HWY_EMU128;
}

#endif

std::atomic<bool> g_vnni_allowed{true};

// The named target and all lesser ones; 0 if there is none of that name.
int64_t targets_up_to(std::string_view name) {
  // A better target has a lower bit.
  for (int64_t rest = hwy::SupportedTargets() & HWY_TARGETS; rest != 0; rest &= rest - 1) {
    if (name == hwy::TargetName(rest & -rest)) {
      return rest;
    }
  }
  return 0;
}

}  // namespace

std::string simd_target_names() {
  std::string names;
  const int64_t targets = hwy::SupportedTargets() & HWY_TARGETS;
  for (int64_t rest = targets; rest != 0; rest &= rest - 1) {
    names += names.empty() ? "" : ",";
    names += hwy::TargetName(rest & -rest);
  }
  return names;
}

bool has_simd_target(std::string_view name) {
  return targets_up_to(name) != 0;
}

void limit_simd_target(std::string_view name) {
  const int64_t targets = targets_up_to(name);
  hwy::GetChosenTarget().Update(targets);
  allow_vnni(targets == (hwy::SupportedTargets() & HWY_TARGETS));
}

bool has_vnni(int64_t vector_bytes) {
  static const bool found[2] = {detect_vnni(32), detect_vnni(64)};
  return found[vector_bytes == 64 ? 1 : 0] && g_vnni_allowed.load(std::memory_order_relaxed);
}

void allow_vnni(bool allowed) {
  g_vnni_allowed.store(allowed, std::memory_order_relaxed);
}

}  // namespace pavo::cpu

// Names are Highway's. NOLINTBEGIN(readability-identifier-naming)
namespace hwy {

int64_t SupportedTargets() {
  static const int64_t targets = pavo::cpu::detect_targets();
  return targets;
}

ChosenTarget& GetChosenTarget() {
  static ChosenTarget chosen;
  return chosen;
}

// Reached only through Highway's own assertions, which no kernel uses.
void Abort(const char* /*file*/, int /*line*/, const char* /*format*/, ...) {
  std::abort();
}

}  // namespace hwy
// NOLINTEND(readability-identifier-naming)
