// What this machine's processor can do, as the key-value list that hosts read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pavo/plugin.h"

namespace pavo::cpu {

class Caps {
 public:
  // Reads the machine; `threads` is what the plugin computes with.
  explicit Caps(int32_t threads);
  Caps(const Caps&) = delete;
  Caps& operator=(const Caps&) = delete;

  const pavo_values& values() const { return list_; }
  const std::string& name() const { return name_; }

 private:
  void add_int(const char* key, int64_t number);
  void add_float(const char* key, double number);
  void add_string(const char* key, std::string_view text);  // text must outlive this
  pavo_value& add(const char* key, int32_t type);

  std::string name_;
  std::string simd_targets_;
  std::vector<pavo_value> items_;
  std::vector<const pavo_value*> pointers_;
  pavo_values list_{};
};

// Bytes of memory that this process may use: the machine's, or its control group's if that is less.
struct HostMemory {
  int64_t total_bytes;
  int64_t free_bytes;
};
HostMemory host_memory();

// Value of a float cap, or `fallback` if the list lacks it or it is not positive.
double float_cap(const pavo_values* caps, const char* key, double fallback);

// Estimates used where caps say nothing.
inline constexpr double kBandwidthPerThread = 10e9;
inline constexpr double kFlopsPerThread = 40e9;

}  // namespace pavo::cpu
