// What pavo-probe writes to its result pipe, one JSON object a line, and how it is called:
//   pavo-probe [--result-fd N] [--no-devices | --device ID ...] PLUGIN
// {"stage": TEXT, "device": ID} before each step, so that a crash has a place (device: if it is
// about one); at last
// {"result": {"ok": bool, "message": TEXT, "warnings": [TEXT], "devices": [
//     {"id": TEXT, "name": TEXT, "arch": TEXT, "tested": bool, "message": TEXT}]}}
#pragma once

#include <cstdint>

namespace pavo::probe {

// Part of the cache key: raise it when an old answer would mislead.
inline constexpr int32_t kProtocol = 2;

inline constexpr char kStage[] = "stage";
inline constexpr char kStageDevice[] = "device";
inline constexpr char kResult[] = "result";
inline constexpr char kOk[] = "ok";
inline constexpr char kMessage[] = "message";  // empty if all is well
inline constexpr char kWarnings[] = "warnings";
inline constexpr char kDevices[] = "devices";
inline constexpr char kId[] = "id";
inline constexpr char kName[] = "name";
inline constexpr char kArchitecture[] = "arch";
inline constexpr char kTested[] = "tested";

inline constexpr char kOptionResultFd[] = "--result-fd";
inline constexpr char kOptionNoDevices[] = "--no-devices";
inline constexpr char kOptionDevice[] = "--device";

// A device list longer than this is a fault.
inline constexpr uint32_t kMaxDevices = 256;

}  // namespace pavo::probe
