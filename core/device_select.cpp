#include "core/device_select.h"

#include <algorithm>
#include <utility>

namespace pavo {
namespace {

constexpr int32_t major_of(int32_t capability) {
  return capability / 10;
}

// The nearest target that the device can run as machine code, NULL if there is none.
const CudaTarget* best_sass(const PluginNote& note, int32_t capability) {
  const CudaTarget* best = nullptr;
  for (const CudaTarget& target : note.sass) {
    const bool runs = target.capability == capability ||
                      (!target.specific && major_of(target.capability) == major_of(capability) &&
                       target.capability < capability);
    if (runs && (best == nullptr || target.capability > best->capability)) {
      best = &target;
    }
  }
  return best;
}

const CudaTarget* best_ptx(const PluginNote& note, int32_t capability) {
  const CudaTarget* best = nullptr;
  for (const CudaTarget& target : note.ptx) {
    const bool runs =
        target.capability == capability || (!target.specific && target.capability < capability);
    if (runs && (best == nullptr || target.capability > best->capability)) {
      best = &target;
    }
  }
  return best;
}

std::string names(const std::vector<CudaTarget>& targets) {
  std::string text;
  for (const CudaTarget& target : targets) {
    text += (text.empty() ? "" : ", ") + target.name;
  }
  return text;
}

std::string code_text(const PluginNote& note) {
  if (note.sass.empty()) {
    return "only PTX for " + names(note.ptx);
  }
  return "code for " + names(note.sass) +
         (note.ptx.empty() ? " and no PTX" : " and PTX for " + names(note.ptx));
}

CodeVerdict refuse(std::string text) {
  return {CodeMatch::kRefused, 0, std::move(text)};
}

std::string driver_text(int32_t version) {
  return version == 0 ? "unknown" : cuda_version_text(version);
}

const SelectionVeto* find_veto(
    const std::vector<SelectionVeto>& vetoes, size_t device, size_t plugin) {
  const auto it = std::find_if(vetoes.begin(), vetoes.end(), [&](const SelectionVeto& veto) {
    return veto.device == device && veto.plugin == plugin;
  });
  return it == vetoes.end() ? nullptr : &*it;
}

bool better(const CodeVerdict& a, const CodeVerdict& b) {
  return a.match != b.match ? a.match < b.match : a.target > b.target;
}

}  // namespace

const char* code_match_name(CodeMatch match) {
  switch (match) {
    case CodeMatch::kExact:
      return "exact";
    case CodeMatch::kOlderMinor:
      return "older minor";
    case CodeMatch::kPtx:
      return "ptx";
    case CodeMatch::kRefused:
      return "refused";
  }
  return "refused";
}

CodeVerdict match_code(const PluginNote& note, const CudaDevice& device, int32_t driver_version) {
  const std::string chip = capability_text(device.capability);
  if (device.compute_mode == ComputeMode::kProhibited) {
    return refuse("the device's compute mode is \"prohibited\"; nvidia-smi -c 0 allows its use");
  }
  if (driver_version < note.driver_min) {
    return refuse(
        "needs a driver for CUDA " + cuda_version_text(note.driver_min) + " or newer, found " +
        driver_text(driver_version) + "; update the driver");
  }
  if (const CudaTarget* sass = best_sass(note, device.capability)) {
    if (sass->capability == device.capability) {
      return {CodeMatch::kExact, sass->capability, sass->name + " code, made for this chip"};
    }
    return {
        CodeMatch::kOlderMinor,
        sass->capability,
        sass->name + " code on a " + chip + " chip: runs, not tuned"};
  }
  const CudaTarget* ptx = best_ptx(note, device.capability);
  if (ptx == nullptr) {
    return refuse("the chip is " + chip + ", the plugin has " + code_text(note));
  }
  if (driver_version < note.toolkit) {
    return refuse(
        "its PTX (" + ptx->name + ") would fit the chip, but PTX of toolkit " +
        cuda_version_text(note.toolkit) + " needs a driver for CUDA " +
        cuda_version_text(note.toolkit) + " or newer, found " + driver_text(driver_version));
  }
  return {
      CodeMatch::kPtx,
      ptx->capability,
      ptx->name + " PTX on a " + chip + " chip, compiled at first use: runs, not tuned"};
}

std::string architecture_of(const CudaDevice& device) {
  return "sm_" + std::to_string(device.capability);
}

Selection select_devices(
    const std::vector<CudaDevice>& devices,
    int32_t driver_version,
    const std::vector<PluginNote>& plugins,
    const std::vector<SelectionVeto>& vetoes,
    const SelectionRank& rank) {
  Selection selection;
  const auto rank_of = [&](size_t d, size_t p) { return rank ? rank(d, p) : 0; };
  for (size_t d = 0; d < devices.size(); ++d) {
    const size_t row = selection.grid.size();
    std::optional<size_t> owner;
    for (size_t p = 0; p < plugins.size(); ++p) {
      SelectionCell cell;
      cell.device = d;
      cell.plugin = p;
      cell.verdict = match_code(plugins[p], devices[d], driver_version);
      cell.text = cell.verdict.text;
      const SelectionVeto* veto = find_veto(vetoes, d, p);
      const bool usable = cell.verdict.match != CodeMatch::kRefused && veto == nullptr;
      if (veto != nullptr && cell.verdict.match != CodeMatch::kRefused) {
        cell.text = veto->reason;
      }
      if (usable && owner) {
        const size_t ranked = rank_of(d, p);
        const size_t before = rank_of(d, *owner);
        const CodeVerdict& held = selection.grid[row + *owner].verdict;
        owner = ranked < before || (ranked == before && better(cell.verdict, held)) ? p : *owner;
      } else if (usable) {
        owner = p;
      }
      selection.grid.push_back(std::move(cell));
    }
    for (size_t p = 0; p < plugins.size(); ++p) {
      SelectionCell& cell = selection.grid[row + p];
      cell.owner = owner == p;
      const bool loses = owner && !cell.owner && cell.verdict.match != CodeMatch::kRefused &&
                         find_veto(vetoes, d, p) == nullptr;
      if (loses) {
        cell.text += "; " + plugins[*owner].id + " serves this device";
      }
    }
    selection.owners.push_back(owner);
  }
  return selection;
}

}  // namespace pavo
