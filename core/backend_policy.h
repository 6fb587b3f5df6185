// Which backends a user wants, and in which order. A backend is a plugin on a device; a selector is
// a text of the settings that names some: the plugin's id or kind, the device's architecture
// ("sm_61") or its id. A '*' at the end of a selector stands for any rest.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "core/plugin_note.h"

namespace pavo {

// What is not known (yet) is empty.
struct BackendName {
  std::string plugin;
  PluginKind kind = PluginKind::kOther;
  std::string architecture;
  std::string device;
};

// "cuda-sm61 on GPU-1234 (sm_61)".
std::string backend_text(const BackendName& name);

// True if a part of the name that is known is what the selector says.
bool selects(std::string_view selector, const BackendName& name);

struct BackendPolicy {
  std::vector<std::string> allow;    // empty: all
  std::vector<std::string> deny;     // wins over allow
  std::vector<std::string> rank;     // best first; what none of them selects comes after
  std::vector<std::string> require;  // each must select a backend that is used

  // Why the user does not want this backend; empty if it is welcome. `allow` says nothing against
  // one whose device is not known yet.
  std::string refusal(const BackendName& name) const;
  // Position in the order of preference: smaller is better. The CPU plugin is last unless it is
  // ranked.
  size_t rank_of(const BackendName& name) const;
};

}  // namespace pavo
