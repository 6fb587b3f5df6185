// An instance of the plugin: validated options, caps, and the pure questions about nodes.
#pragma once

#include <cstdint>

#include "pavo/plugin.h"

#include "plugins/cpu/caps.h"
#include "plugins/cpu/options.h"

struct pavo_plugin {
 public:
  // Limits the instruction sets of the process if the options say so.
  explicit pavo_plugin(pavo::cpu::Options options);

  const pavo::cpu::Options& options() const { return options_; }
  const pavo::cpu::Caps& caps() const { return caps_; }

  // [any] As in plugin.h.
  int32_t query_nodes(
      const pavo_values* caps,
      const pavo_graph* graph,
      pavo_verdict* const* verdicts,
      pavo_error* error) const;

 private:
  const pavo::cpu::Options options_;
  const pavo::cpu::Caps caps_;
};

namespace pavo::cpu {

// Weights are used as the file has them.
int32_t pack_info(const pavo_tensor* tensor, pavo_pack_info* info, pavo_error* error);
int32_t pack(
    const pavo_device* device,
    const pavo_tensor* tensor,
    const pavo_binding& target,
    const void* src,
    int64_t row_begin,
    int64_t row_count,
    pavo_error* error);

}  // namespace pavo::cpu
