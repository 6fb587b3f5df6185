// The one way in which the core calls a plugin at run time: under the watchdog's eyes, and what the
// plugin throws against the rules becomes a status.
#pragma once

#include <exception>
#include <string>

#include "pavo/plugin.h"

#include "core/host_api.h"
#include "core/log.h"
#include "core/plugin_guard.h"
#include "core/plugin_table.h"
#include "core/status.h"

namespace pavo {

// Runs call(pavo_error*), which returns a PAVO_ERROR_* code. name: of the table's function, static
// text. The message names the plugin.
template <typename Call>
Status call_plugin(const pavo_plugin_api* api, const char* name, Call&& call) {
  const std::string plugin(api->id.data, static_cast<size_t>(api->id.size));
  pavo_error error = make_error();
  const PluginScope scope(api, name);
  const auto thrown = [&](const std::string& what) {
    return Status(
        Code::kInternal,
        plugin + ": " + name + " threw an exception" + what +
            "; nothing may be thrown across the ABI, report it to the plugin's author");
  };
  try {
    return plugin_status(call(&error), error, plugin);
  } catch (const std::exception& exception) {
    return thrown(" (" + printable(exception.what(), 200) + ")");
  } catch (...) {
    return thrown("");
  }
}

// The same for functions that return nothing; a fault is logged.
template <typename Call>
void call_plugin_quietly(const pavo_plugin_api* api, const char* name, Call&& call) {
  const Status status = call_plugin(api, name, [&](pavo_error*) {
    call();
    return PAVO_OK;
  });
  if (!status.ok()) {
    log_error(status.message());
  }
}

}  // namespace pavo
