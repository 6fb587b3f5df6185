// Arithmetic peaks of the current CUDA device, measured with plain loops of independent chains.
#pragma once

namespace pavo::bench {

// Multiplications and additions a second, two each product; 0 if the device lacks the operation or
// the measurement fails.
double f32_peak();
double half2_peak();
double dot4_peak();  // four products of bytes an instruction

}  // namespace pavo::bench
