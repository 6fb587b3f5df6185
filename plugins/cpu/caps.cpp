#include "plugins/cpu/caps.h"

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string_view>

#include <unistd.h>

#include "pavo/plugin_helpers.h"

#include "plugins/cpu/simd_targets.h"

namespace pavo::cpu {
namespace {

// A few channels of DDR4, shared by all threads.
constexpr double kBandwidthPerSocket = 60e9;

std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) {
      return line.substr(colon + 2);
    }
  }
  return "CPU";
}

// The first number in a file, or `fallback` ("max" in a control group is no number).
int64_t read_number(const char* path, int64_t fallback) {
  std::ifstream file(path);
  int64_t number = 0;
  return file >> number ? number : fallback;
}

int64_t available_memory() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  int64_t kilobytes = 0;
  std::string rest;
  while (file >> key >> kilobytes && std::getline(file, rest)) {
    if (key == "MemAvailable:") {
      return kilobytes * 1024;
    }
  }
  return 0;
}

// Fused multiply-adds of one f32 vector a cycle on two ports, at the base clock of a server part.
double flops_per_thread(const std::string& targets) {
  constexpr double kClock = 2.5e9;
  double lanes = 4;
  if (targets.find("AVX3") != std::string::npos) {
    lanes = 16;
  } else if (targets.find("AVX2") != std::string::npos) {
    lanes = 8;
  }
  return kClock * lanes * 2 * 2;
}

}  // namespace

HostMemory host_memory() {
  const int64_t total = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const int64_t available = available_memory();
  const int64_t limit = std::min(read_number("/sys/fs/cgroup/memory.max", total), total);
  const int64_t used = read_number("/sys/fs/cgroup/memory.current", 0);
  if (limit < total) {
    return {limit, std::min(available, std::max<int64_t>(0, limit - used))};
  }
  return {total, available};
}

Caps::Caps(int32_t threads) : name_(processor_name()), simd_targets_(simd_target_names()) {
  items_.reserve(8);  // string caps point into members, list entries into items_
  add_string(PAVO_CAP_ARCH, "cpu");
  add_string(PAVO_CAP_NAME, name_);
  add_int(PAVO_CAP_MEMORY_BYTES, host_memory().total_bytes);
  add_float(PAVO_CAP_BANDWIDTH, std::min(threads * kBandwidthPerThread, kBandwidthPerSocket));
  add_float(PAVO_CAP_F32_FLOPS, threads * flops_per_thread(simd_targets_));
  add_int("threads", threads);
  add_string("simd_targets", simd_targets_);
  for (const pavo_value& item : items_) {
    pointers_.push_back(&item);
  }
  list_ = {sizeof(pavo_values), static_cast<uint32_t>(pointers_.size()), pointers_.data()};
}

pavo_value& Caps::add(const char* key, int32_t type) {
  pavo_value value{};
  value.struct_size = sizeof value;
  value.type = type;
  value.key = sdk::string(key);
  items_.push_back(value);
  return items_.back();
}

void Caps::add_int(const char* key, int64_t number) {
  add(key, PAVO_VALUE_INT).int_value = number;
}

void Caps::add_float(const char* key, double number) {
  add(key, PAVO_VALUE_FLOAT).float_value = number;
}

void Caps::add_string(const char* key, std::string_view text) {
  add(key, PAVO_VALUE_STRING).string_value = sdk::string(text);
}

double float_cap(const pavo_values* caps, const char* key, double fallback) {
  const uint32_t count = caps == nullptr ? 0 : caps->count;
  for (uint32_t i = 0; i < count; ++i) {
    const pavo_value* item = caps->items[i];
    if (item != nullptr && item->struct_size >= sizeof(pavo_value) &&
        item->type == PAVO_VALUE_FLOAT && sdk::view(item->key) == key && item->float_value > 0) {
      return item->float_value;
    }
  }
  return fallback;
}

}  // namespace pavo::cpu
