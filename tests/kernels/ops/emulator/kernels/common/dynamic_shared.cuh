// Stands in for kernels/common/dynamic_shared.cuh (emulator.h).
#pragma once

#include "tests/kernels/ops/emulator/emulator.h"

namespace pavo::cuda {

inline float* dynamic_shared() {
  return emulator::dynamic_shared();
}

}  // namespace pavo::cuda
