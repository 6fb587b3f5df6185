#include "core/probe_cache.h"

#include <array>
#include <fstream>
#include <utility>

#include <nlohmann/json.hpp>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include "pavo/plugin.h"

#include "core/hash.h"
#include "core/private_file.h"
#include "core/probe_protocol.h"

namespace pavo {
namespace {

using nlohmann::json;

constexpr size_t kMaxFileBytes = 1 << 20;

std::string file_hash(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> buffer(1 << 16);
  Hash hash;
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())), file.gcount() > 0) {
    hash.add({buffer.data(), static_cast<size_t>(file.gcount())});
  }
  return "file " + hash.text();
}

// A home folder may be shared by machines of which one lacks an instruction that another has.
std::string processor() {
  Hash hash;
#if defined(__x86_64__)
  constexpr std::array<unsigned, 5> kLeaves = {1, 7, 0x80000002u, 0x80000003u, 0x80000004u};
  for (const unsigned leaf : kLeaves) {
    std::array<unsigned, 4> words = {};
    __get_cpuid_count(leaf, 0, words.data(), &words[1], &words[2], &words[3]);
    words[1] = leaf == 1 ? 0 : words[1];  // holds the number of the core this runs on
    hash.add({reinterpret_cast<const char*>(words.data()), sizeof words});
  }
#endif
  return hash.text();
}

json to_json(const ProbeResult& result) {
  json devices = json::array();
  for (const ProbedDevice& device : result.devices) {
    devices.push_back(
        {{"id", device.id},
         {"name", device.name},
         {"arch", device.architecture},
         {"tested", device.tested},
         {"fault", device.fault}});
  }
  return {
      {"outcome", static_cast<int32_t>(result.outcome)},
      {"text", result.text},
      {"warnings", result.warnings},
      {"device_at_fault", result.device_at_fault},
      {"devices", std::move(devices)}};
}

ProbeResult from_json(const json& value) {
  ProbeResult result;
  result.outcome = static_cast<ProbeOutcome>(value.at("outcome").get<int32_t>());
  result.text = value.at("text");
  result.warnings = value.at("warnings").get<std::vector<std::string>>();
  result.device_at_fault = value.at("device_at_fault");
  for (const json& device : value.at("devices")) {
    result.devices.push_back(
        {device.at("id"),
         device.at("name"),
         device.at("arch"),
         device.at("tested"),
         device.at("fault")});
  }
  result.cached = true;
  return result;
}

int64_t now_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool device_failed(const ProbeResult& result) {
  for (const ProbedDevice& device : result.devices) {
    if (!device.fault.empty()) {
      return true;
    }
  }
  return false;
}

}  // namespace

ProbeKey ProbeKey::make(
    const std::filesystem::path& plugin,
    const ElfFacts& elf,
    int32_t driver_version,
    const std::vector<std::string>& devices,
    bool no_devices) {
  std::string text = "protocol " + std::to_string(probe::kProtocol) + ", abi " +
                     std::to_string(PAVO_ABI_MAJOR) + "." + std::to_string(PAVO_ABI_MINOR) + ", " +
                     plugin.string() + ", " +
                     (elf.build_id.empty() ? file_hash(plugin) : "build " + elf.build_id) + ", " +
                     std::to_string(elf.file_bytes) + " bytes, time " +
                     std::to_string(elf.mtime_ns) + ", processor " + processor() + ", driver " +
                     std::to_string(driver_version) + (no_devices ? ", no devices" : "");
  for (const std::string& id : devices) {
    text += ", " + id;
  }
  return {std::move(text)};
}

std::filesystem::path ProbeCache::file_of(const ProbeKey& key) const {
  return folder_ / "probe" / (hash_text(key.text) + ".json");
}

std::optional<ProbeResult> ProbeCache::find(const ProbeKey& key) const {
  if (folder_.empty()) {
    return std::nullopt;
  }
  const std::optional<std::string> text = read_private_file(file_of(key), kMaxFileBytes);
  if (!text) {
    return std::nullopt;
  }
  try {
    const json entry = json::parse(*text);
    if (entry.at("key") != key.text) {
      return std::nullopt;
    }
    ProbeResult result = from_json(entry.at("result"));
    const int64_t age = now_seconds() - entry.at("time").get<int64_t>();
    if (result.outcome == ProbeOutcome::kTimedOut) {
      const bool fresh = age >= 0 && age < std::chrono::seconds(kHangLifetime).count();
      if (!fresh) {
        return std::nullopt;
      }
      result.text += "; remembered from " + std::to_string(age / 60) + " min ago, tried again " +
                     std::to_string(kHangLifetime.count()) + " min after that";
      return result;
    }
    const bool good = result.outcome == ProbeOutcome::kOk && !device_failed(result);
    return good ? std::optional(std::move(result)) : std::nullopt;
  } catch (const json::exception&) {
    return std::nullopt;  // damaged, or written by another version
  }
}

void ProbeCache::store(const ProbeKey& key, const ProbeResult& result) const {
  const bool good = result.outcome == ProbeOutcome::kOk && !device_failed(result);
  if (folder_.empty() || (!good && result.outcome != ProbeOutcome::kTimedOut)) {
    return;
  }
  const json entry = {{"key", key.text}, {"time", now_seconds()}, {"result", to_json(result)}};
  const std::string text = entry.dump(2, ' ', false, json::error_handler_t::replace);
  // No cache this time is no reason to fail.
  static_cast<void>(write_private_file(file_of(key), text));
}

}  // namespace pavo
