// Remembers what probes said, one small file each under the user's cache folder. A cache that is
// missing, damaged or read-only costs time, never an error.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/elf_file.h"
#include "core/plugin_probe.h"

namespace pavo {

// All that an answer depends on.
struct ProbeKey {
  std::string text;

  // driver_version and devices: of the plugin's own devices; 0 and empty for other kinds.
  static ProbeKey make(
      const std::filesystem::path& plugin,
      const ElfFacts& elf,
      int32_t driver_version,
      const std::vector<std::string>& devices,
      bool no_devices);
};

class ProbeCache {
 public:
  // Successes hold until the key changes. A hang is remembered for a while, since it costs seconds
  // to find; other failures are not, since a missing library or a full device may be put right.
  static constexpr std::chrono::minutes kHangLifetime{10};

  // folder: "" for no cache. Made when something is stored.
  explicit ProbeCache(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::optional<ProbeResult> find(const ProbeKey& key) const;
  // Keeps what is worth keeping. Written whole or not at all; safe against other processes.
  void store(const ProbeKey& key, const ProbeResult& result) const;

 private:
  std::filesystem::path file_of(const ProbeKey& key) const;

  std::filesystem::path folder_;
};

}  // namespace pavo
