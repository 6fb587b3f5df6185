#include "plugins/cpu/instance.h"

#include <algorithm>
#include <cinttypes>
#include <cstring>
#include <utility>

#include "pavo/plugin_helpers.h"

#include "plugins/cpu/device.h"
#include "plugins/cpu/graph_copy.h"
#include "plugins/cpu/kernel_table.h"
#include "plugins/cpu/simd_targets.h"
#include "plugins/cpu/tensor_view.h"

namespace {

// Waking the threads and going through the plan.
constexpr double kLaunchNs = 3000;
// A reference kernel runs scalar double loops: measured at a few percent of a fast one.
constexpr double kSlowFactor = 30;

int64_t estimate_ns(const pavo::cpu::NodeQuery& query, const pavo_values* caps, int32_t decision) {
  const pavo::cpu::Cost cost = pavo::cpu::node_cost(query);
  const double threads = query.options.threads;
  const double bandwidth =
      pavo::cpu::float_cap(caps, PAVO_CAP_BANDWIDTH, threads * pavo::cpu::kBandwidthPerThread);
  const double flops =
      pavo::cpu::float_cap(caps, PAVO_CAP_F32_FLOPS, threads * pavo::cpu::kFlopsPerThread);
  double ns = std::max(cost.bytes / bandwidth, cost.flops / flops) * 1e9;
  ns *= decision == PAVO_ACCEPT_SLOW ? kSlowFactor : 1;
  return static_cast<int64_t>(std::min(ns + kLaunchNs, 9e18));
}

// The caller's verdict may be shorter or longer than ours.
int32_t write_verdict(const pavo_verdict& verdict, pavo_verdict* target, pavo_error* error) {
  if (target == nullptr || target->struct_size < offsetof(pavo_verdict, text)) {
    return pavo::sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected a pavo_verdict of at least %zu bytes, got %u",
        offsetof(pavo_verdict, text),
        target == nullptr ? 0U : target->struct_size);
  }
  const uint32_t size = target->struct_size;
  std::memcpy(static_cast<void*>(target), &verdict, std::min<size_t>(size, sizeof verdict));
  target->struct_size = size;
  return PAVO_OK;
}

}  // namespace

pavo_plugin::pavo_plugin(pavo::cpu::Options options)
    : options_(std::move(options)), caps_(options_.threads) {
  if (!options_.simd.empty()) {
    pavo::cpu::limit_simd_target(options_.simd);
  }
}

int32_t pavo_plugin::query_nodes(
    const pavo_values* caps,
    const pavo_graph* graph,
    pavo_verdict* const* verdicts,
    pavo_error* error) const {
  pavo::cpu::GraphCopy copy;
  int32_t code = copy.init(graph, error);
  if (code == PAVO_OK && verdicts == nullptr && copy.graph().node_count != 0) {
    code = pavo::sdk::fail(
        error, PAVO_ERROR_INVALID_ARGUMENT, "expected an array of verdicts, got NULL");
  }
  for (uint32_t i = 0; code == PAVO_OK && i < copy.graph().node_count; ++i) {
    pavo_verdict verdict{};
    verdict.struct_size = sizeof verdict;
    const pavo::cpu::NodeQuery query = {options_, copy.graph(), copy.node(i)};
    if (copy.fault(i) != nullptr) {
      verdict = *copy.fault(i);
    } else if (pavo::cpu::choose_kernel(query, &verdict) != nullptr) {
      verdict.est_source = PAVO_EST_MODEL;
      verdict.est_ns = estimate_ns(query, caps, verdict.decision);
    }
    code = write_verdict(verdict, verdicts[i], error);
  }
  return code;
}

namespace pavo::cpu {
namespace {

// Reads the caller's tensor and checks that it is a weight with a row layout.
int32_t read_weight(const pavo_tensor* source, pavo_tensor* out, pavo_error* error) {
  const int32_t code = sdk::read_struct(source, out, sizeof(pavo_tensor), "pavo_tensor", error);
  if (code != PAVO_OK) {
    return code;
  }
  if (out->role != PAVO_ROLE_WEIGHT || extent_bytes(*out) < 0) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected a weight of whole blocks, got role %d, type %s, rank %d",
        out->role,
        pavo_type_name(out->type),
        out->rank);
  }
  return PAVO_OK;
}

}  // namespace

int32_t pack_info(const pavo_tensor* tensor, pavo_pack_info* info, pavo_error* error) {
  pavo_tensor weight;
  const int32_t code = read_weight(tensor, &weight, error);
  if (code != PAVO_OK) {
    return code;
  }
  if (info == nullptr || info->struct_size < sizeof(pavo_pack_info)) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "expected a pavo_pack_info of at least %zu bytes",
        sizeof(pavo_pack_info));
  }
  info->in_place = 1;
  info->size_bytes = extent_bytes(weight);
  info->alignment = 1;
  return PAVO_OK;
}

int32_t pack(
    const pavo_device* device,
    const pavo_tensor* tensor,
    const pavo_binding& target,
    const void* src,
    int64_t row_begin,
    int64_t row_count,
    pavo_error* error) {
  pavo_tensor weight;
  int32_t code = read_weight(tensor, &weight, error);
  if (code != PAVO_OK) {
    return code;
  }
  const int64_t rows = cpu::row_count(weight);
  if (row_begin < 0 || row_count < 0 || row_begin > rows || rows - row_begin < row_count) {
    return sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "pack: expected rows within 0..%" PRId64 ", got %" PRId64 " from %" PRId64,
        rows,
        row_count,
        row_begin);
  }
  const int64_t row_bytes = pavo_type_row_bytes(weight.type, row_length(weight));
  const int64_t size = row_count * row_bytes;
  if (size == 0) {
    return PAVO_OK;
  }
  code = check_range(device, target, extent_bytes(weight), "pack", error);
  if (code == PAVO_OK && (src == nullptr || target.buffer->imported)) {
    code = sdk::fail(
        error,
        PAVO_ERROR_INVALID_ARGUMENT,
        "pack: %s",
        src == nullptr ? "the source is NULL"
                       : "the target is imported memory, which is read only");
  }
  if (code == PAVO_OK) {
    std::memcpy(
        target.buffer->data + target.offset + row_begin * row_bytes,
        src,
        static_cast<size_t>(size));
  }
  return code;
}

}  // namespace pavo::cpu
