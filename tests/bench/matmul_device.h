// Matrix products of one plugin, timed through plugin.h alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/ops/backend.h"

namespace pavo::bench {

struct MatmulSize {
  int32_t type;  // of the weights
  int64_t rows, columns;
};

struct MatmulTime {
  std::string refusal;  // else empty
  std::string variant;  // the kernel's name
  double median_s = 0;  // of one product, launches of its helpers included
  double fastest_s = 0;
  double error = 0;        // |got - want| / |want| over the checked outputs, Euclidean
  double error_limit = 0;  // what int8 (or f32) activations may bring
};

// One device with the weights of one size: copies of them, so many that the caches do not serve
// them, used in turn.
class MatmulDevice {
 public:
  explicit MatmulDevice(const test::BackendConfig& config);
  ~MatmulDevice();
  MatmulDevice(const MatmulDevice&) = delete;
  MatmulDevice& operator=(const MatmulDevice&) = delete;

  // Bytes read and written a second by a large copy inside the device's memory.
  double copy_bytes_per_s();

  // Replaces the weights. Throws std::runtime_error if the plugin cannot pack them.
  void load(const MatmulSize& size);
  int64_t weight_bytes() const { return weight_bytes_; }  // packed, one copy

  // One product with each copy makes a plan, which runs several times a round.
  MatmulTime measure(int64_t tokens, int32_t precision);

 private:
  struct Plan;
  pavo_buffer* allocate(int64_t bytes);
  void drop_weights();
  void pack(const std::vector<std::byte>& pattern);
  void copy(const pavo_copy_region& region);
  double run_s(const Plan& plan, int times);
  void check(const Plan& plan, MatmulTime* result);

  test::Backend backend_;
  pavo_timeline* timeline_ = nullptr;
  uint64_t value_ = 0;  // last one signalled
  MatmulSize size_{};
  int64_t weight_bytes_ = 0;
  std::vector<pavo_buffer*> weights_;
  std::vector<float> decoded_;  // of the rows that repeat
};

}  // namespace pavo::bench
