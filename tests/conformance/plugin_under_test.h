// A plugin in this process, without a device: what the checks of loading, instances and predicates
// stand on.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "pavo/plugin.h"

#include "core/plugin_table.h"
#include "tests/conformance/kit.h"

namespace pavo::conformance {

std::string message_of(const pavo_error& error);

// An error struct full of a pattern, so that what was not written shows.
pavo_error poisoned_error();

// "code 5: no memory"; adds a fault if the error does not say what the code promises: the same
// code, a message within its bounds.
std::string checked_error(Context& context, int32_t code, const pavo_error& error);

// Loads and asks with this host API; NULL with a fault if that fails.
const pavo_plugin_api* load(Context& context, const pavo_host_api* host);

// Typed options of a plugin, from text, and what owns them.
class OptionList {
 public:
  // Keys that the plugin does not list become strings.
  OptionList(const pavo_plugin_api& api, const std::map<std::string, std::string>& options);
  OptionList(const OptionList&) = delete;
  OptionList& operator=(const OptionList&) = delete;
  const pavo_values* get() const { return &list_; }
  std::vector<pavo_value>& items() { return items_; }

 private:
  std::map<std::string, std::string> texts_;
  std::vector<pavo_value> items_;
  std::vector<const pavo_value*> pointers_;
  pavo_values list_{};
};

// The plugin's list; empty with a fault if the call fails.
std::vector<const pavo_option_info*> options_of(Context& context, const pavo_plugin_api& api);

class Instance {
 public:
  // With the options of the context. A fault if it cannot be made; then get() is NULL.
  Instance(Context& context, const pavo_plugin_api& api);
  Instance(const Instance&) = delete;
  Instance& operator=(const Instance&) = delete;
  ~Instance();
  pavo_plugin* get() const { return plugin_; }

  // Ids of its devices.
  std::vector<std::string> devices(Context& context) const;

 private:
  const pavo_plugin_api& api_;
  pavo_plugin* plugin_ = nullptr;
};

// False, and the check is skipped, if the plugin finds no device here.
bool has_device(Context& context);

// Bytes at the very end of a page that is followed by one that nobody may touch: who reads behind
// what a struct_size promises crashes.
class AtPageEnd {
 public:
  AtPageEnd(const void* bytes, size_t size);
  AtPageEnd(const AtPageEnd&) = delete;
  AtPageEnd& operator=(const AtPageEnd&) = delete;
  ~AtPageEnd();
  void* get() const { return data_; }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* base_;
  size_t mapped_;
  void* data_;
};

}  // namespace pavo::conformance
