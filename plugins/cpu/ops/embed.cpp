// embed: rows decoded by several threads. The rows of a step are a sliver of the table, so decoding
// itself is left to dequantize_row.
#include <cstdint>
#include <cstring>

#include "plugins/cpu/dequantize.h"
#include "plugins/cpu/kernel.h"
#include "plugins/cpu/ops/row_parts.h"

namespace pavo::cpu {
namespace {

struct EmbedRows {
  static constexpr const char* kName = "embed_rows";
  static constexpr int32_t kOp = pavo_op_embed;
  static constexpr int32_t kDecision = PAVO_ACCEPT;

  // Whatever the reference takes.
  static bool supports(const NodeQuery& /*query*/, pavo_verdict* /*verdict*/) { return true; }

  static int64_t workspace_bytes(const NodeQuery& /*query*/) { return 0; }

  static int32_t launch(const KernelArgs& args, pavo_error* /*error*/) {
    const Operand table = args.input(0);
    const Operand ids = args.input(1);
    const Operand out = args.output(0);
    const int64_t tokens = out.dim(0);
    const int64_t length = out.dim(1);
    const int64_t id_stride = tokens > 1 ? ids.tensor->stride[0] : 0;
    args.pool.parallel_for(tokens, row_grain(length), [&](int64_t begin, int64_t end, int32_t) {
      for (int64_t t = begin; t < end; ++t) {
        float* row = row_of(out, t);
        const int64_t id = *reinterpret_cast<const int32_t*>(ids.data + t * id_stride);
        if (id >= 0 && id < table.dim(0)) {
          const std::byte* source = table.data + row_offset(*table.tensor, id);
          dequantize_row(table.tensor->type, source, length, row);
        } else {
          std::memset(row, 0, static_cast<size_t>(length) * sizeof(float));
        }
      }
    });
    return PAVO_OK;
  }
};

}  // namespace

std::span<const Kernel> embed_kernels() {
  static constexpr Kernel kKernels[] = {entry<EmbedRows>()};
  return kKernels;
}

}  // namespace pavo::cpu
