// Which plugin serves which CUDA device: a pure function of what the driver says and what the notes
// say, so that "no kernel image" cannot happen later. Every pair of device and plugin gets a
// verdict with its reason. Contract: docs/plugin-interface.md, "Choosing".
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/cuda_driver.h"
#include "core/plugin_note.h"

namespace pavo {

// Best first.
enum class CodeMatch : int32_t {
  kExact,       // machine code made for this chip
  kOlderMinor,  // machine code for a lower minor of the same major: runs, not tuned
  kPtx,         // compiled by the driver: runs, not tuned
  kRefused,
};

const char* code_match_name(CodeMatch match);

struct CodeVerdict {
  CodeMatch match = CodeMatch::kRefused;
  int32_t target = 0;  // capability of the code that would run; 0 if refused
  std::string text;    // one line
};

// What one plugin's code means to one device.
CodeVerdict match_code(const PluginNote& note, const CudaDevice& device, int32_t driver_version);

// A pair that must not be used although the code would fit: the probe failed, the user said so.
struct SelectionVeto {
  size_t device = 0;
  size_t plugin = 0;
  std::string reason;
};

struct SelectionCell {
  size_t device = 0;
  size_t plugin = 0;
  CodeVerdict verdict;
  bool owner = false;  // this plugin serves this device
  std::string text;    // why it does, or does not
};

struct Selection {
  std::vector<SelectionCell> grid;            // all pairs, device by device
  std::vector<std::optional<size_t>> owners;  // per device: index of its plugin
};

// "sm_61": what settings and caps call the device's architecture.
std::string architecture_of(const CudaDevice& device);

// What the user prefers; smaller is better.
using SelectionRank = std::function<size_t(size_t device, size_t plugin)>;

// plugins: notes of kind cuda in order of preference among equals. One owner per device: the best
// rank, then the best match, then the nearest target, then the first.
Selection select_devices(
    const std::vector<CudaDevice>& devices,
    int32_t driver_version,
    const std::vector<PluginNote>& plugins,
    const std::vector<SelectionVeto>& vetoes = {},
    const SelectionRank& rank = {});

}  // namespace pavo
