// The fast attention kernel: which nodes it takes, and how a node is cut into items for threads.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "plugins/cpu/attention_check.h"
#include "plugins/cpu/checker.h"
#include "plugins/cpu/kernel.h"
#include "plugins/cpu/ops/attention_problem.h"
#include "plugins/cpu/tensor_view.h"

namespace pavo::cpu {
namespace {

// Positions of the inputs, as in ops.inc.
enum : uint32_t {
  kQ,
  kK,
  kV,
  kRows,
  kRowSeq,
  kSeqRows,
  kLengths,
  kPageTable,
  kSinks,
  kSlopes,
  kMask,
  kRowList
};

// Rows (tokens times query heads of a K/V head) of a block: so many that decoding a page is cheap
// beside the products with it, so few that all of it stays in the L2 cache.
constexpr int64_t kBlockRows = 64;
// Up to so many tokens, long contexts are cut into chunks, of so many rows for one token and more
// for more, so that all threads have work. Neither depends on the number of threads: results do
// not.
constexpr int64_t kChunkedTokens = 16;
constexpr int64_t kChunkRows = 256;
constexpr int64_t kAlignment = 64;
constexpr int64_t kMostPages = INT32_MAX / PAVO_KV_PAGE_ROWS + 1;
// Within these no workspace size overflows.
constexpr int64_t kMostTokens = INT32_MAX;
constexpr int64_t kMostHeads = 1 << 16;

int64_t aligned_floats(int64_t floats) {
  return pavo_align_up(floats * static_cast<int64_t>(sizeof(float)), kAlignment);
}

// Sizes of a node, and its workspace: scratch of each thread, items, partial results.
struct Sizes {
  Sizes(
      const AttentionFunctions& functions,
      const pavo_graph& graph,
      const pavo_node& node,
      int32_t threads) {
    const pavo_tensor& q = *sdk::input(graph, node, kQ);
    const pavo_tensor& k = *sdk::input(graph, node, kK);
    tokens = q.shape[0];
    heads = q.shape[1];
    kv_heads = k.shape[1];
    value_dim = sdk::output(graph, node, 0)->shape[2];
    // A length is an int32.
    const int64_t table_pages = std::min(sdk::input(graph, node, kPageTable)->shape[1], kMostPages);
    const int64_t bucket_rows =
        std::clamp<int64_t>(graph.bucket->kv_rows, 0, table_pages * PAVO_KV_PAGE_ROWS);
    kv_rows = pavo_align_up(bucket_rows, PAVO_KV_PAGE_ROWS);
    const int64_t group = heads / kv_heads;
    block_tokens = std::max<int64_t>(1, kBlockRows / std::max<int64_t>(group, 1));
    const bool chunked = tokens <= kChunkedTokens;
    chunk_rows = chunked ? kChunkRows * std::max<int64_t>(tokens, 1)
                         : std::max<int64_t>(kv_rows, PAVO_KV_PAGE_ROWS);
    const int64_t chunks = (kv_rows + chunk_rows - 1) / chunk_rows;
    items_max = tokens * std::max<int64_t>(chunks, 1);
    thread_bytes = aligned_floats(
        functions.scratch_floats(q.shape[2], value_dim, std::min(block_tokens, tokens) * group));
    items_at = threads * thread_bytes;
    partials_at =
        items_at +
        pavo_align_up(items_max * static_cast<int64_t>(sizeof(AttentionItem)), kAlignment);
    const int64_t partial_floats = heads * PartialLayout::floats(value_dim);
    bytes = partials_at + (chunks > 1 ? aligned_floats(items_max * partial_floats) : 0);
  }

  int64_t tokens, heads, kv_heads, value_dim;
  int64_t kv_rows;  // bound of every length, whole pages
  int64_t block_tokens, chunk_rows;
  int64_t items_max;
  int64_t thread_bytes, items_at, partials_at, bytes;
};

// The items of a launch; blocks of one item write outputs, the others are listed for combining.
class ItemList {
 public:
  ItemList(const KernelArgs& args, const AttentionProblem& problem, const Sizes& sizes)
      : problem_(problem),
        sizes_(sizes),
        row_seq_(args.input(kRowSeq).as<const int32_t>()),
        sequences_(args.input(kLengths).dim(0)),
        items_(reinterpret_cast<AttentionItem*>(args.workspace + sizes.items_at)),
        next_partial_(reinterpret_cast<float*>(args.workspace + sizes.partials_at)) {}

  // Cuts all tokens; tokens that see nothing get zeros at once. Returns the first token whose step
  // tensors lead outside of the tables, or -1.
  int64_t cut() {
    for (int64_t t = 0; t < sizes_.tokens;) {
      const int64_t sequence = row_seq_[t];
      if (sequence >= sequences_ || (sequence >= 0 && !valid_length(sequence))) {
        return t;
      }
      int64_t end = t + 1;
      while (end < sizes_.tokens && end - t < sizes_.block_tokens && row_seq_[end] == sequence) {
        ++end;
      }
      add_block(t, end - t, sequence);
      t = end;
    }
    return -1;
  }

  int64_t size() const { return size_; }
  const AttentionItem& operator[](int64_t index) const { return items_[index]; }

  // Items index .. end - 1 belong to one block.
  int64_t block_end(int64_t index) const {
    const int64_t token = items_[index].first_token;
    while (index < size_ && items_[index].first_token == token) {
      ++index;
    }
    return index;
  }

 private:
  bool valid_length(int64_t sequence) const {
    const int64_t length = problem_.lengths[sequence];
    return length >= 0 && length <= sizes_.kv_rows;
  }

  void add_block(int64_t first, int64_t tokens, int64_t sequence) {
    int64_t begin = INT64_MAX;
    int64_t end = 0;
    for (int64_t t = first; t < first + tokens && sequence >= 0; ++t) {
      const int64_t own = problem_.rows[t];
      const int64_t token_begin = problem_.rows_begin(own);
      const int64_t token_end = problem_.rows_end(own, problem_.lengths[sequence]);
      if (token_begin < token_end) {
        begin = std::min(begin, token_begin);
        end = std::max(end, token_end);
      }
    }
    if (begin >= end) {
      write_zeros(first, tokens);
      return;
    }
    const bool chunked = begin / sizes_.chunk_rows != (end - 1) / sizes_.chunk_rows;
    for (int64_t row = begin; row < end;) {
      const int64_t chunk_end = (row / sizes_.chunk_rows + 1) * sizes_.chunk_rows;
      AttentionItem item = {first, tokens, sequence, row, std::min(end, chunk_end), nullptr};
      if (chunked) {
        item.partials = next_partial_;
        next_partial_ += tokens * sizes_.heads * PartialLayout::floats(sizes_.value_dim);
      }
      items_[size_++] = item;
      row = item.row_end;
    }
  }

  void write_zeros(int64_t first, int64_t tokens) {
    for (int64_t t = first; t < first + tokens; ++t) {
      for (int64_t h = 0; h < sizes_.heads; ++h) {
        float* out = problem_.out + t * problem_.out_token + h * problem_.out_head;
        std::fill(out, out + sizes_.value_dim, 0.0F);
      }
    }
  }

  const AttentionProblem& problem_;
  const Sizes& sizes_;
  const int32_t* row_seq_;
  int64_t sequences_;
  AttentionItem* items_;
  float* next_partial_;
  int64_t size_ = 0;
};

// Adds the partial results of items begin .. end - 1 for token `token` of their block and head h.
void combine_partials(
    const AttentionProblem& p,
    const ItemList& items,
    int64_t begin,
    int64_t end,
    int64_t token,
    int64_t h) {
  const int64_t at = (token * p.heads + h) * PartialLayout::floats(p.v.dim);
  float largest = p.sinks != nullptr ? p.sinks[h] : -INFINITY;
  for (int64_t i = begin; i < end; ++i) {
    largest = std::max(largest, items[i].partials[at + PartialLayout::kLargest]);
  }
  float* out = p.out + (items[begin].first_token + token) * p.out_token + h * p.out_head;
  std::fill(out, out + p.v.dim, 0.0F);
  float weight = p.sinks != nullptr ? std::exp(p.sinks[h] - largest) : 0.0F;
  for (int64_t i = begin; i < end; ++i) {
    const float* partial = items[i].partials + at;
    const float chunk_largest = partial[PartialLayout::kLargest];
    const float factor = chunk_largest == -INFINITY ? 0.0F : std::exp(chunk_largest - largest);
    weight += partial[PartialLayout::kWeight] * factor;
    for (int64_t d = 0; d < p.v.dim; ++d) {
      out[d] += partial[PartialLayout::kValues + d] * factor;
    }
  }
  const float scale = weight == 0.0F ? 0.0F : 1.0F / weight;
  for (int64_t d = 0; d < p.v.dim; ++d) {
    out[d] *= scale;
  }
}

int64_t float_stride(const pavo_tensor& tensor, int32_t dimension) {
  return tensor.stride[dimension] / static_cast<int64_t>(sizeof(float));
}

KvPool make_pool(const Operand& pool, int64_t dim) {
  KvPool result = {pool.tensor->type, pool.data, pool.dim(0), pool.dim(1), dim, {}};
  pavo_kv_layout_init(pool.tensor->type, pool.dim(3), &result.layout);
  return result;
}

AttentionProblem make_problem(const KernelArgs& args) {
  const auto& params = args.params<pavo_attention_params>();
  const Operand q = args.input(kQ);
  const Operand k = args.input(kK);
  const Operand out = args.output(0);
  const Operand table = args.input(kPageTable);
  const Operand mask = args.input(kMask);
  AttentionProblem problem = {};
  problem.heads = q.dim(1);
  problem.kv_heads = k.dim(1);
  problem.q = q.as<const float>();
  problem.q_token = float_stride(*q.tensor, 0);
  problem.q_head = float_stride(*q.tensor, 1);
  problem.out = out.as<float>();
  problem.out_token = float_stride(*out.tensor, 0);
  problem.out_head = float_stride(*out.tensor, 1);
  problem.k = make_pool(k, k.dim(3));
  problem.v = make_pool(args.input(kV) ? args.input(kV) : k, out.dim(2));
  problem.rows = args.input(kRows).as<const int32_t>();
  problem.page_table = table.as<const int32_t>();
  problem.page_table_pitch = float_stride(*table.tensor, 0);
  problem.lengths = args.input(kLengths).as<const int32_t>();
  problem.sinks = args.input(kSinks).as<const float>();
  problem.slopes = args.input(kSlopes).as<const float>();
  if (mask) {
    problem.mask = mask.as<const float>();
    problem.mask_pitch = float_stride(*mask.tensor, 0);
    problem.mask_columns = mask.dim(1);
  }
  problem.scale = params.scale;
  problem.softcap = params.softcap;
  problem.causal = params.causal != 0;
  problem.window = params.window;
  return problem;
}

// Every K/V type pair, every structure but row lists.
struct AttentionPages {
  static constexpr const char* kName = "attention_pages_f32";
  static constexpr int32_t kOp = pavo_op_attention;
  static constexpr int32_t kDecision = PAVO_ACCEPT;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    if (!attention_pages_functions()) {
      return sdk::refuse(
          verdict,
          PAVO_REASON_DEVICE_FEATURE,
          -1,
          -1,
          0,
          0,
          "expected a processor with SSE4, AVX2 or AVX-512, got none of them");
    }
    if (query.input(kRowList) != nullptr) {
      return sdk::refuse(
          verdict, PAVO_REASON_OPERAND, kRowList, -1, 0, 1, "row lists are not taken");
    }
    Checker check(query, verdict);
    return check.dim_at_most(kQ, 0, kMostTokens) && check.dim_at_most(kQ, 1, kMostHeads);
  }

  static int64_t workspace_bytes(const NodeQuery& query) {
    const AttentionFunctions functions = attention_pages_functions();
    return functions ? Sizes(functions, query.graph, query.node, query.options.threads).bytes : 0;
  }

  static int32_t launch(const KernelArgs& args, pavo_error* error) {
    const AttentionFunctions functions = attention_pages_functions();
    if (!functions) {
      return sdk::fail(
          error,
          PAVO_ERROR_NODE_FAILED,
          "attention: the option simd of another instance took away the instruction set that this "
          "plan was made for; create instances with the same value");
    }
    const Sizes sizes(functions, args.graph, args.node, args.pool.threads());
    const AttentionProblem problem = make_problem(args);
    ItemList items(args, problem, sizes);
    const int64_t bad_token = items.cut();
    if (bad_token >= 0) {
      return fail_attention_token(bad_token, error);
    }
    return run(functions, problem, sizes, items, args, error);
  }

 private:
  static int32_t run(
      const AttentionFunctions& functions,
      const AttentionProblem& problem,
      const Sizes& sizes,
      const ItemList& items,
      const KernelArgs& args,
      pavo_error* error) {
    // Late blocks of a causal prompt are the longest, so they come first.
    const int64_t count = items.size() * sizes.kv_heads;
    std::atomic<int64_t> next{count - 1};
    std::atomic<int64_t> failed_token{-1};
    const int64_t workers = std::min<int64_t>(args.pool.threads(), count);
    args.pool.parallel_for(workers, 1, [&](int64_t, int64_t, int32_t thread) {
      auto* scratch = reinterpret_cast<float*>(args.workspace + thread * sizes.thread_bytes);
      for (int64_t i = next.fetch_sub(1); i >= 0; i = next.fetch_sub(1)) {
        const AttentionItem& item = items[i / sizes.kv_heads];
        if (!functions.attend(problem, item, i % sizes.kv_heads, scratch)) {
          failed_token = item.first_token;
        }
      }
    });
    if (failed_token >= 0) {
      return fail_attention_token(failed_token, error);
    }
    for (int64_t begin = 0, end = 0; begin < items.size(); begin = end) {
      end = items.block_end(begin);
      if (items[begin].partials == nullptr) {
        continue;
      }
      const int64_t rows = items[begin].tokens * sizes.heads;
      args.pool.parallel_for(rows, 1, [&](int64_t first, int64_t last, int32_t /*thread*/) {
        for (int64_t i = first; i < last; ++i) {
          combine_partials(problem, items, begin, end, i / sizes.heads, i % sizes.heads);
        }
      });
    }
    return PAVO_OK;
  }
};

}  // namespace

std::span<const Kernel> attention_kernels() {
  static constexpr Kernel kKernels[] = {entry<AttentionPages>()};
  return kKernels;
}

}  // namespace pavo::cpu
