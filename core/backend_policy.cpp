#include "core/backend_policy.h"

#include <algorithm>

namespace pavo {

std::string backend_text(const BackendName& name) {
  std::string text = name.plugin;
  if (!name.device.empty() && name.device != name.plugin) {
    text += " on " + name.device;
  }
  if (!name.architecture.empty() && name.architecture != name.plugin) {
    text += " (" + name.architecture + ")";
  }
  return text;
}

bool selects(std::string_view selector, const BackendName& name) {
  const bool open = !selector.empty() && selector.back() == '*';
  if (open) {
    selector.remove_suffix(1);
  }
  const auto is = [&](std::string_view part) {
    return !part.empty() && (open ? part.substr(0, selector.size()) == selector : part == selector);
  };
  return is(name.plugin) || is(plugin_kind_name(name.kind)) || is(name.architecture) ||
         is(name.device);
}

std::string BackendPolicy::refusal(const BackendName& name) const {
  const auto matches = [&](const std::string& selector) { return selects(selector, name); };
  if (const auto found = std::find_if(deny.begin(), deny.end(), matches); found != deny.end()) {
    return "denied by configuration: backends.deny has '" + *found + "'";
  }
  if (!name.device.empty() && !allow.empty() && std::none_of(allow.begin(), allow.end(), matches)) {
    return "not among the allowed backends (backends.allow)";
  }
  return {};
}

size_t BackendPolicy::rank_of(const BackendName& name) const {
  const auto found = std::find_if(rank.begin(), rank.end(), [&](const std::string& selector) {
    return selects(selector, name);
  });
  const size_t place = static_cast<size_t>(found - rank.begin());
  return found == rank.end() && name.kind == PluginKind::kCpu ? place + 1 : place;
}

}  // namespace pavo
