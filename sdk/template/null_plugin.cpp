// A plugin that computes nothing: the empty folder to start from. It loads, negotiates, lists one
// device, moves memory, and refuses every node with a reason. TODO(null) marks each place where an
// author has to think; docs/plugin-interface.md says what each part is for, docs/plugin-guide.md
// how to get to a first op.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "pavo/host_device.h"

// TODO(null): your id and version; kind=cuda has more lines, see the end of plugin.h.
PAVO_PLUGIN_NOTE(
    "id=null\nversion=0.1.0\nvendor=example\nlicense=example\nabi=0.1-1\nkind=other\n");

namespace {

using namespace pavo::sdk;  // NOLINT(google-build-using-namespace): a plugin is made of these

// TODO(null): how your device starts a kernel. The memory of sdk's host device stands in for yours.
using Table = HostTable;

Table kernels() {
  return Table({});  // TODO(null): kernels with their rules, best first
}

class NullDevice final : public Device {  // TODO(null): context, queues
 public:
  MemoryInfo memory() override {
    return {0, 0, used_bytes_};  // TODO(null): as your driver says now
  }

  void self_test() override {
    // TODO(null): run one kernel and check what it computed; until then the device is not usable
    raise(PAVO_ERROR_UNSUPPORTED, "there is no kernel to test");
  }

  std::unique_ptr<Buffer> create_buffer(int64_t size_bytes, int32_t /*kind*/) override {
    // TODO(null): device memory; a size that is not to be had is PAVO_ERROR_OUT_OF_MEMORY
    return std::make_unique<HostBuffer>(size_bytes, &used_bytes_);
  }

  std::unique_ptr<Timeline> create_timeline() override {
    return std::make_unique<HostTimeline>();  // TODO(null): whatever your queue signals
  }

  void copy(const pavo_copy_region* regions, uint32_t count, const Fences& fences) override {
    // TODO(null): on your queue, after the fences
    run_fenced(fences, [&] { copy_on_host(regions, count); });
  }

  void pack(
      const pavo_tensor& /*tensor*/,
      const pavo_binding& /*target*/,
      const void* /*src*/,
      int64_t /*row_begin*/,
      int64_t /*row_count*/) override {
    raise(PAVO_ERROR_UNSUPPORTED, "no op reads weights");  // TODO(null)
  }

  std::unique_ptr<Plan> create_plan(std::shared_ptr<const GraphCopy> /*graph*/) override {
    // TODO(null): choose kernels with the same table that query() asks
    raise(PAVO_ERROR_UNSUPPORTED, "no node was accepted");
  }

 private:
  std::atomic<int64_t> used_bytes_{0};
};

class NullPlugin final : public Plugin {
 public:
  explicit NullPlugin(const OptionValues& options) : table_(kernels()) { table_.use(options); }

  std::vector<DeviceFacts> list_devices() override {
    std::vector<DeviceFacts> devices(1);  // TODO(null): ask your driver; none if it is not there
    devices[0].id = "null";               // TODO(null): unique and the same after a reboot
    devices[0].name = "Null device";
    // TODO(null): memory, bandwidth and what your rules ask for
    devices[0].caps.text(PAVO_CAP_ARCH, "null");
    return devices;
  }

  std::unique_ptr<Device> open_device(const DeviceFacts& /*facts*/) override {
    return std::make_unique<NullDevice>();
  }

  void query(const NodeQuery& query, pavo_verdict* verdict) override {
    table_.find(query, verdict);  // TODO(null): est_ns, workspace_bytes, fusion
  }

  PackForm pack_form(const pavo_values* /*caps*/, const pavo_tensor& /*tensor*/) override {
    // TODO(null): size and alignment of your layout; in_place if the file's bytes will do
    raise(PAVO_ERROR_UNSUPPORTED, "no op reads weights");
  }

 private:
  Table table_;
};

const PluginInfo& info() {
  static const PluginInfo plugin = {
      "null",
      "0.1.0",
      kernels().options(),  // TODO(null): options of your own
      [](const OptionValues& options) { return std::make_unique<NullPlugin>(options); }};
  return plugin;
}

}  // namespace

PAVO_PLUGIN(info);
