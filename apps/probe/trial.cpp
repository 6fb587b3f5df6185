#include "apps/probe/trial.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <nlohmann/json.hpp>

#include "pavo/plugin.h"

#include "core/host_api.h"
#include "core/plugin_note.h"
#include "core/plugin_table.h"
#include "core/probe_protocol.h"
#include "core/status.h"

namespace pavo::probe {
namespace {

using nlohmann::json;

struct SignalState {
  void (*handler)(int) = nullptr;
};

std::array<SignalState, 65> signal_handlers() {
  std::array<SignalState, 65> states = {};
  for (size_t i = 1; i < states.size(); ++i) {
    struct sigaction action = {};
    if (::sigaction(static_cast<int>(i), nullptr, &action) == 0) {
      states[i].handler = action.sa_handler;
    }
  }
  return states;
}

size_t thread_count() {
  std::error_code error;
  const std::filesystem::directory_iterator tasks("/proc/self/task", error);
  return error ? 1 : static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

class Trial {
 public:
  Trial(const TrialRequest& request, const std::function<void(const std::string&)>& write)
      : request_(request), write_(write) {}

  void run() {
    json result = {{kWarnings, json::array()}, {kDevices, json::array()}};
    const Status status = body(&result);
    result[kOk] = status.ok();
    result[kMessage] = status.message();
    write_(dump({{kResult, result}}));
  }

 private:
  // Texts of plugins may hold anything.
  static std::string dump(const json& value) {
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
  }

  void stage(const std::string& name, const std::string& device = {}) const {
    json line = {{kStage, name}};
    if (!device.empty()) {
      line[kStageDevice] = device;
    }
    write_(dump(line));
  }

  // Runs one call of the table; an exception becomes a status that says whose fault it is.
  template <typename Call>
  Status call(const std::string& name, const std::string& device, Call&& body) const {
    stage("in " + name, device);
    pavo_error error = make_error();
    try {
      return plugin_status(body(&error), error, name);
    } catch (const std::exception& exception) {
      return Status(
          Code::kInternal,
          name + " threw an exception (" + printable(exception.what()) +
              "); nothing may be thrown across the ABI");
    } catch (...) {
      return Status(
          Code::kInternal, name + " threw an exception; nothing may be thrown across the ABI");
    }
  }

  Status body(json* result) {
    PAVO_ASSIGN_OR_RETURN(const PluginFileFacts facts, read_plugin_file(request_.plugin));
    HostApi& host = HostApi::immortal(facts.note.id, [](int32_t, std::string_view text) {
      std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
    });
    const auto handlers = signal_handlers();
    const size_t threads = thread_count();
    stage("while loading");
    PAVO_ASSIGN_OR_RETURN(const PluginLibrary library, open_plugin_library(request_.plugin));
    stage("in " PAVO_PLUGIN_QUERY_NAME);
    PAVO_ASSIGN_OR_RETURN(api_, query_plugin(library, host.table()));
    PAVO_RETURN_IF_ERROR(check_plugin_table(api_, facts.note));
    PAVO_RETURN_IF_ERROR(check_handlers(handlers));
    if (thread_count() > threads) {
      (*result)[kWarnings].push_back("starts a thread while it is loaded");
    }
    return try_instance(result);
  }

  static Status check_handlers(const std::array<SignalState, 65>& before) {
    const auto after = signal_handlers();
    for (size_t i = 1; i < after.size(); ++i) {
      if (after[i].handler != before[i].handler) {
        return Status(
            Code::kInvalidFile,
            "installs a handler for signal " + std::to_string(i) +
                " while it is loaded; signals belong to the program");
      }
    }
    return Status();
  }

  Status try_instance(json* result) {
    const pavo_values no_options = {sizeof(pavo_values), 0, nullptr};
    pavo_plugin* plugin = nullptr;
    PAVO_RETURN_IF_ERROR(call("plugin_create", "", [&](pavo_error* error) {
      return api_->plugin_create(&no_options, &plugin, error);
    }));
    if (plugin == nullptr) {
      return Status(Code::kInternal, "plugin_create succeeded, but gave no instance");
    }
    const Status listed = try_devices(plugin, result);
    const Status destroyed = call("plugin_destroy", "", [&](pavo_error*) {
      api_->plugin_destroy(plugin);
      return PAVO_OK;
    });
    return listed.ok() ? destroyed : listed;
  }

  Status try_devices(pavo_plugin* plugin, json* result) {
    PAVO_RETURN_IF_ERROR(list_devices(plugin, &(*result)[kDevices]));
    for (json& device : (*result)[kDevices]) {
      const std::string id = device[kId];
      const auto& wanted = request_.devices;
      const bool listed =
          wanted.empty() || std::find(wanted.begin(), wanted.end(), id) != wanted.end();
      if (listed && !request_.no_devices) {
        device[kMessage] = test_device(plugin, id).message();
        device[kTested] = true;
      }
    }
    return Status();
  }

  Status list_devices(pavo_plugin* plugin, json* devices) {
    uint32_t count = 0;
    PAVO_RETURN_IF_ERROR(call("device_count", "", [&](pavo_error* error) {
      return api_->device_count(plugin, &count, error);
    }));
    if (count > kMaxDevices) {
      return Status(
          Code::kInvalidFile,
          "lists " + std::to_string(count) + " devices, expected at most " +
              std::to_string(kMaxDevices));
    }
    std::vector<std::string> ids;
    for (uint32_t i = 0; i < count; ++i) {
      pavo_device_info info = {};
      info.struct_size = sizeof info;
      PAVO_RETURN_IF_ERROR(call("device_info", "", [&](pavo_error* error) {
        return api_->device_info(plugin, i, &info, error);
      }));
      const std::string id = text_of(info.id);
      if (id.empty() || printable(id) != id) {
        return Status(
            Code::kInvalidFile,
            "device " + std::to_string(i) + " has the id \"" + printable(id, 64) +
                "\", expected a printable text");
      }
      if (std::find(ids.begin(), ids.end(), id) != ids.end()) {
        return Status(Code::kInvalidFile, "lists device " + id + " twice");
      }
      ids.push_back(id);
      devices->push_back(
          {{kId, id},
           {kName, printable(text_of(info.name), 256)},
           {kArchitecture, printable(architecture_of(info.caps), 64)},
           {kTested, false},
           {kMessage, ""}});
    }
    return Status();
  }

  static std::string architecture_of(const pavo_values* caps) {
    for (uint32_t i = 0; caps != nullptr && i < caps->count; ++i) {
      const pavo_value& value = *caps->items[i];
      if (value.type == PAVO_VALUE_STRING && text_of(value.key) == PAVO_CAP_ARCH) {
        return text_of(value.string_value);
      }
    }
    return {};
  }

  static std::string text_of(const pavo_string& text) {
    constexpr uint64_t kMost = 1024;
    return text.data == nullptr ? std::string()
                                : std::string(text.data, std::min(text.size, kMost));
  }

  Status test_device(pavo_plugin* plugin, const std::string& id) {
    pavo_device* device = nullptr;
    const pavo_string name = {id.data(), id.size()};
    PAVO_RETURN_IF_ERROR(call("device_open", id, [&](pavo_error* error) {
      return api_->device_open(plugin, &name, &device, error);
    }));
    if (device == nullptr) {
      return Status(Code::kInternal, "device_open succeeded, but gave no device");
    }
    const Status tested = call("device_self_test", id, [&](pavo_error* error) {
      return api_->device_self_test(device, error);
    });
    const Status closed = call("device_close", id, [&](pavo_error*) {
      api_->device_close(device);
      return PAVO_OK;
    });
    return tested.ok() ? closed : tested;
  }

  const TrialRequest& request_;
  const std::function<void(const std::string&)>& write_;
  const pavo_plugin_api* api_ = nullptr;
};

}  // namespace

void run_trial(const TrialRequest& request, const std::function<void(const std::string&)>& write) {
  Trial(request, write).run();
}

}  // namespace pavo::probe
