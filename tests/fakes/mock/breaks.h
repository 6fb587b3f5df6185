// Rules of the plugin interface that the mock device can be told to break, one at a time: each
// shows that a check of the conformance kit bites. PAVO_MOCK_BREAK names the rule; no option does,
// since a check may give options of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pavo/plugin.h"

#include "tests/fakes/mock/device.h"

namespace pavo::mock {

// True if this one is to be broken.
bool breaks(std::string_view rule);

// What goes wrong around a run, in the thread of the queue, with the bindings at hand: before the
// CPU plugin inside computes, and after. The memory is open.
class BrokenRun {
 public:
  BrokenRun(const Plan& plan, const pavo_binding* inner_bindings, const pavo_binding& workspace);
  void before();
  void after();

 private:
  std::byte* data(uint32_t tensor) const;
  std::byte* output() const { return data(plan_.graph.outputs.front()); }

  const Plan& plan_;
  const pavo_binding* bindings_;
  pavo_binding workspace_;
  std::vector<std::byte> saved_;
};

// What goes wrong with the verdict of a node.
void break_verdict(const pavo_graph& graph, pavo_verdict* verdict);

// Puts it down where another thread finds it, and takes what is there a moment later.
void share_verdict(pavo_verdict* verdict);

// Writes to host memory without asking whether there was any.
void use_memory_unchecked();

GraphFacts facts_of(const pavo_graph& graph);

// Every tensor cut to what the mock knows, whatever is behind that.
class CutGraph {
 public:
  explicit CutGraph(const pavo_graph& graph);
  const pavo_graph* get() const { return &graph_; }

 private:
  std::vector<pavo_tensor> tensors_;
  std::vector<const pavo_tensor*> pointers_;
  pavo_graph graph_;
};

// After a failed device_open.
void break_open_error(pavo_device** out, pavo_error* error, int32_t* code);

}  // namespace pavo::mock
