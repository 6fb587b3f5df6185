#include "core/device_assignment.h"

#include <algorithm>
#include <future>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "core/device_select.h"
#include "core/probe_cache.h"

namespace pavo {
namespace {

bool is_cuda(const PluginEntry& entry) {
  return entry.facts && entry.facts->note.kind == PluginKind::kCuda;
}

bool exclusive(const CudaDevice& device) {
  return device.compute_mode == ComputeMode::kExclusiveProcess ||
         device.compute_mode == ComputeMode::kExclusiveThread;
}

void reject(PluginEntry* entry, std::string reason) {
  entry->state = PluginState::kRejected;
  entry->faulty = true;
  entry->reason = std::move(reason);
  entry->devices.clear();
}

// One probe that has to be run.
struct Trial {
  size_t plugin = 0;
  std::vector<std::string> devices;  // to be tested
  bool no_devices = false;
};

ProbeResult run_trial(
    const RegistryOptions& options,
    const PluginEntry& entry,
    int32_t driver_version,
    const Trial& trial) {
  const ProbeCache cache(options.cache_folder);
  const ProbeKey key = ProbeKey::make(
      entry.path,
      entry.facts->elf,
      is_cuda(entry) ? driver_version : 0,
      trial.devices,
      trial.no_devices);
  std::optional<ProbeResult> known = entry.suspect ? std::nullopt : cache.find(key);
  if (known) {
    return std::move(*known);
  }
  ProbeRequest request;
  request.program = options.probe_program;
  request.plugin = entry.path;
  request.devices = trial.devices;
  request.no_devices = trial.no_devices;
  request.timeout = options.probe_timeout;
  ProbeResult result = probe_plugin(request);
  cache.store(key, result);
  return result;
}

class Assignment {
 public:
  Assignment(const RegistryOptions& options, RegistryReport* report)
      : options_(options), report_(*report) {}

  void run() {
    select();
    while (options_.probe) {
      const std::vector<Trial> trials = open_trials();
      if (trials.empty()) {
        break;
      }
      // Each round ends with a plugin tried, rejected, or a pair ruled out: it comes to an end.
      judge(trials, run_trials(trials));
      select();
    }
    own_other_devices();
    fill_grid();
  }

 private:
  const CudaDevice& device(size_t index) const { return report_.driver.devices[index]; }

  void select() {
    cuda_.clear();
    std::vector<PluginNote> notes;
    for (size_t i = 0; i < report_.plugins.size(); ++i) {
      PluginEntry& entry = report_.plugins[i];
      if (!is_cuda(entry) || entry.state == PluginState::kRejected) {
        continue;
      }
      entry.devices.clear();
      cuda_.push_back(i);
      notes.push_back(entry.facts->note);
    }
    std::vector<SelectionVeto> vetoes;
    for (size_t d = 0; d < report_.driver.devices.size(); ++d) {
      for (size_t p = 0; p < cuda_.size(); ++p) {
        if (std::string reason = objection(d, cuda_[p]); !reason.empty()) {
          vetoes.push_back({d, p, std::move(reason)});
        }
      }
    }
    const auto rank = [this](size_t d, size_t p) {
      return options_.policy.rank_of(backend(d, cuda_[p]));
    };
    selection_ =
        select_devices(report_.driver.devices, report_.driver.version, notes, vetoes, rank);
    for (size_t d = 0; d < selection_.owners.size(); ++d) {
      if (selection_.owners[d]) {
        report_.plugins[cuda_[*selection_.owners[d]]].devices.push_back(device(d).id);
      }
    }
    for (const size_t index : cuda_) {
      set_state(index);
    }
  }

  BackendName backend(size_t d, size_t plugin) const {
    return report_.backend(report_.plugins[plugin], device(d).id);
  }

  // Why the plugin must not have the device: it failed there, or the user said so; else empty.
  std::string objection(size_t d, size_t plugin) const {
    const BackendName name = backend(d, plugin);
    if (options_.backend != "auto" && !selects(options_.backend, name)) {
      return "backend '" + options_.backend + "' was asked for";
    }
    if (std::string refusal = options_.policy.refusal(name); !refusal.empty()) {
      return refusal;
    }
    const auto veto = vetoes_.find({d, plugin});
    return veto != vetoes_.end() ? veto->second : std::string();
  }

  void set_state(size_t plugin) const {
    PluginEntry& entry = report_.plugins[plugin];
    const bool idle = entry.devices.empty();
    entry.state = idle ? PluginState::kIdle : PluginState::kReady;
    entry.reason.clear();
    if (!idle) {
      return;
    }
    entry.reason = report_.driver.devices.empty() ? report_.driver.absence
                                                  : "it serves none of the devices here";
    for (size_t d = 0; d < report_.driver.devices.size(); ++d) {
      if (std::string reason = objection(d, plugin); !reason.empty()) {
        entry.reason = std::move(reason);
      }
    }
  }

  std::vector<Trial> open_trials() const {
    std::vector<Trial> trials;
    for (size_t i = 0; i < report_.plugins.size(); ++i) {
      const PluginEntry& entry = report_.plugins[i];
      if (entry.state != PluginState::kReady) {
        continue;
      }
      Trial trial;
      trial.plugin = i;
      if (is_cuda(entry)) {
        for (size_t d = 0; d < report_.driver.devices.size(); ++d) {
          const bool own = report_.may_use(entry, device(d).id);
          if (own && !exclusive(device(d))) {
            trial.devices.push_back(device(d).id);
          }
        }
        trial.no_devices = trial.devices.empty();
      }
      if (!tried(trial)) {
        trials.push_back(std::move(trial));
      }
    }
    return trials;
  }

  // True if nothing new can be learnt: the last trial was of the same devices or more.
  bool tried(const Trial& trial) const {
    const auto before = tried_.find(trial.plugin);
    return before != tried_.end() &&
           std::all_of(trial.devices.begin(), trial.devices.end(), [&](const std::string& id) {
             return before->second.count(id) != 0;
           });
  }

  std::vector<ProbeResult> run_trials(const std::vector<Trial>& trials) const {
    std::vector<std::future<ProbeResult>> running;
    running.reserve(trials.size());
    for (const Trial& trial : trials) {
      // The last one needs no thread of its own, and no other one gets it if there are none left.
      const auto policy = &trial == &trials.back() ? std::launch::deferred
                                                   : std::launch::async | std::launch::deferred;
      running.push_back(std::async(policy, [this, &trial] {
        return run_trial(options_, report_.plugins[trial.plugin], report_.driver.version, trial);
      }));
    }
    std::vector<ProbeResult> results(trials.size());
    for (size_t i = trials.size(); i > 0; --i) {
      results[i - 1] = running[i - 1].get();
    }
    return results;
  }

  void judge(const std::vector<Trial>& trials, std::vector<ProbeResult> results) {
    for (size_t i = 0; i < trials.size(); ++i) {
      PluginEntry& entry = report_.plugins[trials[i].plugin];
      entry.probe = std::move(results[i]);
      const ProbeResult& result = *entry.probe;
      // A crash in one device's test says nothing about the others.
      if (result.device_at_fault.empty()) {
        tried_[trials[i].plugin] = {trials[i].devices.begin(), trials[i].devices.end()};
      }
      if (result.outcome == ProbeOutcome::kOk) {
        judge_devices(trials[i], result);
      } else if (result.outcome == ProbeOutcome::kNotRun) {
        entry.warnings.push_back(result.text);
      } else if (is_cuda(entry) && !result.device_at_fault.empty()) {
        veto(result.device_at_fault, trials[i].plugin, result.text);
      } else {
        reject(&entry, result.text);
      }
    }
  }

  // kind=cuda: every device that was to be tested must be there and work.
  void judge_devices(const Trial& trial, const ProbeResult& result) {
    for (const std::string& id : trial.devices) {
      const auto found = std::find_if(
          result.devices.begin(), result.devices.end(), [&](const ProbedDevice& probed) {
            return probed.id == id;
          });
      if (found == result.devices.end()) {
        veto(id, trial.plugin, "the code would fit, but the plugin does not list this device");
      } else if (!found->fault.empty()) {
        veto(id, trial.plugin, found->fault);
      }
    }
  }

  void veto(const std::string& id, size_t plugin, const std::string& reason) {
    for (size_t d = 0; d < report_.driver.devices.size(); ++d) {
      if (device(d).id == id) {
        vetoes_[{d, plugin}] = reason;
      }
    }
  }

  bool owned(const std::string& id) const {
    return std::any_of(
        report_.plugins.begin(), report_.plugins.end(), [&](const PluginEntry& entry) {
          return std::find(entry.devices.begin(), entry.devices.end(), id) != entry.devices.end();
        });
  }

  // Devices of plugins that are not for CUDA are those that they list themselves.
  void own_other_devices() {
    std::vector<size_t> order(report_.plugins.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [this](size_t a, size_t b) {
      return options_.policy.rank_of(report_.plugins[a].backend()) <
             options_.policy.rank_of(report_.plugins[b].backend());
    });
    for (const size_t index : order) {
      PluginEntry& entry = report_.plugins[index];
      const bool known = entry.probe && entry.probe->outcome == ProbeOutcome::kOk;
      if (entry.state == PluginState::kRejected) {
        continue;
      }
      if (entry.probe) {
        const auto& warnings = entry.probe->warnings;
        entry.warnings.insert(entry.warnings.end(), warnings.begin(), warnings.end());
      }
      if (is_cuda(entry) || !known) {
        continue;
      }
      std::string fault = "it found no device";
      for (const ProbedDevice& probed : entry.probe->devices) {
        if (!probed.fault.empty()) {
          fault = probed.id + ": " + probed.fault;
          entry.warnings.push_back(fault);
        } else if (const std::string refusal =
                       options_.policy.refusal(report_.backend(entry, probed.id));
                   !refusal.empty()) {
          fault = probed.id + ": " + refusal;
        } else if (owned(probed.id)) {
          fault = probed.id + " is served by an earlier plugin";
          entry.warnings.push_back(fault);
        } else {
          entry.devices.push_back(probed.id);
        }
      }
      if (entry.devices.empty()) {
        entry.state = PluginState::kIdle;
        entry.reason = fault;
      }
    }
  }

  void fill_grid() {
    for (const SelectionCell& cell : selection_.grid) {
      const size_t plugin = cuda_[cell.plugin];
      DevicePluginPair pair = {
          cell.device, plugin, cell.verdict.match, cell.owner, false, cell.text};
      const std::optional<ProbeResult>& probe = report_.plugins[plugin].probe;
      if (cell.owner && probe) {
        for (const ProbedDevice& probed : probe->devices) {
          pair.tested |= probed.id == device(cell.device).id && probed.tested;
        }
        if (!pair.tested && exclusive(device(cell.device))) {
          pair.text += "; not probed, since the device is in exclusive mode";
        }
      }
      report_.grid.push_back(std::move(pair));
    }
  }

  const RegistryOptions& options_;
  RegistryReport& report_;
  std::vector<size_t> cuda_;  // plugins that take part in the selection
  Selection selection_;
  std::map<std::pair<size_t, size_t>, std::string> vetoes_;  // device, plugin
  std::map<size_t, std::set<std::string>> tried_;            // plugin: devices of its last trial
};

}  // namespace

void assign_devices(const RegistryOptions& options, RegistryReport* report) {
  Assignment(options, report).run();
}

ProbeResult probe_without_devices(const RegistryOptions& options, const PluginEntry& entry) {
  Trial trial;
  trial.no_devices = true;
  return run_trial(options, entry, 0, trial);
}

}  // namespace pavo
