// C++17: a plugin as classes. An author derives from Plugin, Device, Buffer, Timeline and Plan (or
// takes those of host_device.h) and names a PluginInfo in PAVO_PLUGIN; the table of the C ABI, with
// its exception barriers, struct sizes, checks of arguments and ownership, is made of them
// (plugin_entry.h).
//
// Functions say what is wrong by raise(); it becomes a status at the border. Objects are destroyed
// when the host destroys their handle. Thread rules are those of plugin.h.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pavo/node_checks.h"
#include "pavo/plugin.h"

namespace pavo::sdk {

// What the host gave to pavo_plugin_query; valid until the process ends.
inline const pavo_host_api*& host() {
  static const pavo_host_api* api = nullptr;
  return api;
}

inline void log(int32_t level, std::string_view message) {
  host()->log(host()->context, level, message.data(), message.size());
}

// Counted host memory, 64-byte aligned. Raises PAVO_ERROR_OUT_OF_MEMORY.
class HostMemory {
 public:
  explicit HostMemory(int64_t size_bytes) : size_(size_bytes) {
    constexpr uint64_t kAlignment = 64;
    data_ = host()->alloc(host()->context, static_cast<uint64_t>(size_), kAlignment);
    if (data_ == nullptr) {
      raise(PAVO_ERROR_OUT_OF_MEMORY, "no host memory for %" PRId64 " bytes", size_bytes);
    }
  }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
  ~HostMemory() { host()->free(host()->context, data_, static_cast<uint64_t>(size_)); }

  char* data() const { return static_cast<char*>(data_); }
  int64_t size_bytes() const { return size_; }

 private:
  void* data_ = nullptr;
  int64_t size_;
};

// ---- Options and caps -------------------------------------------------------------------------

struct Option {
  std::string key;
  int32_t type;       // PAVO_VALUE_*
  std::string text;   // one line for people, with the unit and the allowed values
  std::string value;  // the default, as text
  // Of the other two types, the allowed range.
  double least = -9e15;
  double most = 9e15;
};

// What the user set, checked against the list; the rest has its default.
class OptionValues {
 public:
  // Raises PAVO_ERROR_INVALID_ARGUMENT with the key in the message.
  OptionValues(const std::vector<Option>& known, const pavo_values* given) {
    for (const Option& option : known) {
      values_.push_back(
          {option,
           option.value,
           std::strtoll(option.value.c_str(), nullptr, 10),
           std::strtod(option.value.c_str(), nullptr)});
    }
    if (given == nullptr) {
      return;
    }
    pavo_values list{};
    read_or_raise(given, &list, "pavo_values");
    for (uint32_t i = 0; i < list.count; ++i) {
      pavo_value value{};
      read_or_raise(list.items[i], &value, "pavo_value");
      set(value);
    }
  }

  int64_t integer(std::string_view key) const { return find(key).integer; }
  double number(std::string_view key) const { return find(key).number; }
  const std::string& text(std::string_view key) const { return find(key).text; }

 private:
  struct Value {
    Option option;
    std::string text;
    int64_t integer;
    double number;
  };

  const Value& find(std::string_view key) const {
    for (const Value& value : values_) {
      if (value.option.key == key) {
        return value;
      }
    }
    raise(
        PAVO_ERROR_INTERNAL,
        "this plugin asks for its option '%.*s', which it does not list",
        static_cast<int>(key.size()),
        key.data());
  }

  void set(const pavo_value& given) {
    constexpr const char* kTypes[] = {"an integer", "a number", "a string"};
    const std::string key(view(given.key));
    for (Value& value : values_) {
      const Option& option = value.option;
      if (option.key != key) {
        continue;
      }
      if (given.type != option.type) {
        raise(
            PAVO_ERROR_INVALID_ARGUMENT,
            "option %s: expected %s, got a value of type %d",
            key.c_str(),
            kTypes[option.type],
            given.type);
      }
      value.integer = given.int_value;
      value.number = given.float_value;
      const double number =
          option.type == PAVO_VALUE_INT ? static_cast<double>(value.integer) : value.number;
      if (option.type == PAVO_VALUE_STRING) {
        value.text = view(given.string_value);
      } else if (!(number >= option.least && number <= option.most)) {
        raise(
            PAVO_ERROR_INVALID_ARGUMENT,
            "option %s: expected %g to %g, got %g",
            key.c_str(),
            option.least,
            option.most,
            number);
      }
      return;
    }
    raise(PAVO_ERROR_INVALID_ARGUMENT, "there is no option '%s'", key.c_str());
  }

  std::vector<Value> values_;
};

// Owns a list of caps.
class Caps {
 public:
  Caps& text(std::string key, std::string value) {
    return add(std::move(key), PAVO_VALUE_STRING, 0, 0, std::move(value));
  }
  Caps& integer(std::string key, int64_t value) {
    return add(std::move(key), PAVO_VALUE_INT, value, 0, "");
  }
  Caps& number(std::string key, double value) {
    return add(std::move(key), PAVO_VALUE_FLOAT, 0, value, "");
  }
  // Valid as long as this object is there and not added to.
  const pavo_values* list() const { return &list_; }

 private:
  struct Item {
    std::string key;
    std::string text;
    pavo_value value;
  };

  Caps& add(std::string key, int32_t type, int64_t integer, double number, std::string text) {
    items_.push_back(std::make_unique<Item>());
    Item& item = *items_.back();
    item.key = std::move(key);
    item.text = std::move(text);
    item.value = {sizeof(pavo_value), type, string(item.key), integer, number, string(item.text)};
    pointers_.push_back(&item.value);
    list_ = {sizeof(pavo_values), static_cast<uint32_t>(pointers_.size()), pointers_.data()};
    return *this;
  }

  std::vector<std::unique_ptr<Item>> items_;
  std::vector<const pavo_value*> pointers_;
  pavo_values list_{sizeof(pavo_values), 0, nullptr};
};

// The value of a cap, or `otherwise` if there is none of that key and type.
inline int64_t cap_integer(const pavo_values* caps, std::string_view key, int64_t otherwise) {
  for (uint32_t i = 0; caps != nullptr && i < caps->count; ++i) {
    if (view(caps->items[i]->key) == key && caps->items[i]->type == PAVO_VALUE_INT) {
      return caps->items[i]->int_value;
    }
  }
  return otherwise;
}

// ---- What an author writes ----------------------------------------------------------------------

class Buffer {
 public:
  explicit Buffer(int64_t size_bytes) : size_bytes_(size_bytes) {}
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  virtual ~Buffer() = default;
  int64_t size_bytes() const { return size_bytes_; }
  // NULL: the host cannot see this memory.
  virtual void* host_address() { return nullptr; }

 private:
  int64_t size_bytes_;
};

class Timeline {
 public:
  virtual ~Timeline() = default;
  // Blocks until the value is reached; raises PAVO_ERROR_TIMEOUT, or what went wrong, once.
  virtual void wait(uint64_t value, int64_t timeout_ns) = 0;
};

class Plan {
 public:
  virtual ~Plan() = default;
  virtual int32_t launches() const = 0;
  virtual int64_t workspace_bytes() const { return 0; }
  // There is a binding for each tensor of the graph; bind() checks them.
  virtual void submit(const pavo_submit& submit) = 0;
};

struct MemoryInfo {
  int64_t total_bytes = 0;
  int64_t free_bytes = 0;
  int64_t used_bytes = 0;
};

struct Fences {
  const pavo_fence* waits;
  uint32_t wait_count;
  const pavo_fence* signals;
  uint32_t signal_count;
};

class Device {
 public:
  virtual ~Device() = default;
  virtual MemoryInfo memory() = 0;
  virtual void self_test() = 0;
  // size_bytes >= 0, kind: PAVO_MEMORY_DEVICE or _HOST.
  virtual std::unique_ptr<Buffer> create_buffer(int64_t size_bytes, int32_t kind) = 0;
  virtual std::unique_ptr<Timeline> create_timeline() = 0;
  // Every region lies within its buffers.
  virtual void copy(const pavo_copy_region* regions, uint32_t count, const Fences& fences) = 0;
  // The rows are there, and the target has room for the whole packed weight.
  virtual void pack(
      const pavo_tensor& tensor,
      const pavo_binding& target,
      const void* src,
      int64_t row_begin,
      int64_t row_count) = 0;
  // Every node has passed check_node(), not yet the predicate.
  virtual std::unique_ptr<Plan> create_plan(std::shared_ptr<const GraphCopy> graph) = 0;
};

struct DeviceFacts {
  std::string id;  // unique, the same after a reboot
  std::string name;
  Caps caps;  // PAVO_CAP_ARCH is a must
};

struct PackForm {
  int64_t size_bytes = 0;
  int64_t alignment = 1;
  bool in_place = false;
};

class Plugin {
 public:
  virtual ~Plugin() = default;
  // Asked once; empty if there is no driver.
  virtual std::vector<DeviceFacts> list_devices() = 0;
  // One of list_devices().
  virtual std::unique_ptr<Device> open_device(const DeviceFacts& facts) = 0;
  // The predicate of a node that check_node() passed. *verdict is clear.
  virtual void query(const NodeQuery& query, pavo_verdict* verdict) = 0;
  // Of a weight whose size makes sense; raises PAVO_ERROR_UNSUPPORTED.
  virtual PackForm pack_form(const pavo_values* caps, const pavo_tensor& tensor) = 0;
};

struct PluginInfo {
  std::string id;  // as in the note
  std::string version;
  std::vector<Option> options;
  std::function<std::unique_ptr<Plugin>(const OptionValues& options)> create;
};

}  // namespace pavo::sdk
