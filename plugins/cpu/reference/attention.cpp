// attention: each token over the K/V rows of its own sequence; the formula is in ops.inc.
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>
#include <limits>

#include "plugins/cpu/attention_check.h"
#include "plugins/cpu/reference/reference.h"

namespace pavo::cpu {
namespace {

using namespace reference;

constexpr double kMinusInfinity = -std::numeric_limits<double>::infinity();

// The node's operands and what one (token, head) needs of them.
class Attention {
 public:
  explicit Attention(const KernelArgs& args)
      : params_(args.params<pavo_attention_params>()),
        q_(args.input(0)),
        k_(args.input(1)),
        v_(args.input(2) ? args.input(2) : args.input(1)),
        rows_(args.input(3)),
        row_seq_(args.input(4)),
        lengths_(args.input(6)),
        page_table_(args.input(7)),
        sinks_(args.input(8)),
        slopes_(args.input(9)),
        mask_(args.input(10)),
        row_list_(args.input(11)),
        out_(args.output(0)) {
    pavo_kv_layout_init(k_.tensor->type, k_.dim(3), &k_layout_);
    pavo_kv_layout_init(v_.tensor->type, v_.dim(3), &v_layout_);
  }

  // False if a step tensor leads outside of its bounds. `values` holds max(D, Dv of V's rows)
  // floats, `scores` and `visited` P * 64 or L entries, `sums` Dv.
  bool run(int64_t t, int64_t h, float* values, double* scores, int32_t* visited, double* sums) {
    const int64_t dims = out_.dim(2);
    float* out = row(out_, t * q_.dim(1) + h);
    std::fill(out, out + dims, 0.0F);
    const int64_t sequence = index_at(row_seq_, 0, t);
    if (sequence < 0) {
      return true;
    }
    int64_t count = 0;
    if (sequence >= lengths_.dim(0) || !visible_rows(t, sequence, visited, &count)) {
      return false;
    }
    double largest = sinks_ ? weight_at(sinks_, h) : kMinusInfinity;
    for (int64_t i = 0; i < count; ++i) {
      if (!kv_row(k_, k_layout_, sequence, visited[i], group(h), values)) {
        return false;
      }
      scores[i] = score(t, h, sequence, visited[i], values);
      largest = std::max(largest, scores[i]);
    }
    if (largest == kMinusInfinity) {
      return true;
    }
    double total = sinks_ ? std::exp(weight_at(sinks_, h) - largest) : 0.0;
    std::fill(sums, sums + dims, 0.0);
    for (int64_t i = 0; i < count; ++i) {
      if (!kv_row(v_, v_layout_, sequence, visited[i], group(h), values)) {
        return false;
      }
      const double weight = std::exp(scores[i] - largest);
      total += weight;
      for (int64_t d = 0; d < dims && weight != 0; ++d) {
        sums[d] += weight * static_cast<double>(values[d]);
      }
    }
    for (int64_t d = 0; d < dims; ++d) {
      out[d] = static_cast<float>(sums[d] / total);
    }
    return true;
  }

 private:
  int64_t group(int64_t h) const { return h / (q_.dim(1) / k_.dim(1)); }

  static double weight_at(const Operand& weight, int64_t index) {
    float value = 0;
    dequantize_row(weight.tensor->type, weight.data + index * 4, 1, &value);
    return static_cast<double>(value);
  }

  // The rows that token t attends to, in order.
  bool visible_rows(int64_t t, int64_t sequence, int32_t* visited, int64_t* count) const {
    const int64_t length = index_at(lengths_, 0, sequence);
    const int64_t own_row = index_at(rows_, 0, t);
    if (length < 0 || length > page_table_.dim(1) * PAVO_KV_PAGE_ROWS) {
      return false;
    }
    const int64_t candidates = row_list_ ? row_list_.dim(1) : length;
    for (int64_t i = 0; i < candidates; ++i) {
      const int64_t j = row_list_ ? index_at(row_list_, t, i) : i;
      if (j < 0) {
        break;
      }
      if (j >= length) {
        return false;
      }
      const bool causal = params_.causal == 0 || j <= own_row;
      const bool window = params_.window <= 0 || j > own_row - params_.window;
      if (causal && window) {
        visited[(*count)++] = static_cast<int32_t>(j);
      }
    }
    return true;
  }

  // Decodes K/V row j of a sequence; false if its page is not in the pool.
  bool kv_row(
      const Operand& pool,
      const pavo_kv_layout& layout,
      int64_t sequence,
      int64_t j,
      int64_t head,
      float* out) const {
    const int64_t page = index_at(page_table_, sequence, j / PAVO_KV_PAGE_ROWS);
    if (page < 0 || page >= pool.dim(0)) {
      return false;
    }
    const std::byte* memory = pool.data + (page * pool.dim(1) + head) * layout.head_bytes;
    dequantize_kv_row(pool.tensor->type, layout, memory, j % PAVO_KV_PAGE_ROWS, pool.dim(3), out);
    return true;
  }

  double score(int64_t t, int64_t h, int64_t sequence, int64_t j, const float* k) const {
    const float* q = row(q_, t * q_.dim(1) + h);
    double dot = 0;
    for (int64_t d = 0; d < q_.dim(2); ++d) {
      dot += static_cast<double>(q[d]) * static_cast<double>(k[d]);
    }
    double score = static_cast<double>(params_.scale) * dot;
    if (params_.softcap > 0.0F) {
      const auto cap = static_cast<double>(params_.softcap);
      score = cap * std::tanh(score / cap);
    }
    if (slopes_) {
      score += weight_at(slopes_, h) * static_cast<double>(j - index_at(rows_, 0, t));
    }
    if (mask_) {
      const int64_t column = j - (index_at(lengths_, 0, sequence) - mask_.dim(1));
      score += column >= 0 ? static_cast<double>(row(mask_, t)[column]) : 0.0;
    }
    return score;
  }

  const pavo_attention_params& params_;
  Operand q_, k_, v_, rows_, row_seq_, lengths_, page_table_, sinks_, slopes_, mask_, row_list_;
  Operand out_;
  pavo_kv_layout k_layout_{};
  pavo_kv_layout v_layout_{};
};

struct AttentionReference {
  static constexpr const char* kName = kReferenceName;
  static constexpr int32_t kOp = pavo_op_attention;
  static constexpr int32_t kDecision = PAVO_ACCEPT_SLOW;

  static bool supports(const NodeQuery& query, pavo_verdict* verdict) {
    return check_attention(query, verdict);
  }

  // Per thread: scores, sums, one decoded row, the rows visited.
  struct Scratch {
    explicit Scratch(const pavo_graph& graph, const pavo_node& node) {
      const pavo_tensor& k = *sdk::input(graph, node, 1);
      const pavo_tensor* v = sdk::input(graph, node, 2);
      const pavo_tensor* list = sdk::input(graph, node, 11);
      rows = list != nullptr ? list->shape[1]
                             : sdk::input(graph, node, 7)->shape[1] * PAVO_KV_PAGE_ROWS;
      values = std::max(k.shape[3], v != nullptr ? v->shape[3] : 0);
      constexpr int64_t kDouble = sizeof(double);
      constexpr int64_t kWord = sizeof(float);
      bytes = pavo_align_up(rows * (kDouble + kWord) + values * (kDouble + kWord), kDouble);
    }
    int64_t rows;
    int64_t values;
    int64_t bytes;
  };

  static int64_t workspace_bytes(const NodeQuery& query) {
    return query.options.threads * Scratch(query.graph, query.node).bytes;
  }

  static Cost cost(const NodeQuery& query) { return attention_cost(query); }

  static int32_t launch(const KernelArgs& args, pavo_error* error) {
    const Scratch scratch(args.graph, args.node);
    const Operand q = args.input(0);
    std::atomic<int64_t> bad_token{-1};
    args.pool.parallel_for(q.dim(0) * q.dim(1), 1, [&](int64_t begin, int64_t end, int32_t thread) {
      Attention attention(args);
      auto* scores = reinterpret_cast<double*>(args.workspace + thread * scratch.bytes);
      double* sums = scores + scratch.rows;
      auto* values = reinterpret_cast<float*>(sums + scratch.values);
      auto* visited = reinterpret_cast<int32_t*>(values + scratch.values);
      for (int64_t i = begin; i < end; ++i) {
        if (!attention.run(i / q.dim(1), i % q.dim(1), values, scores, visited, sums)) {
          bad_token = i / q.dim(1);
        }
      }
    });
    return bad_token < 0 ? PAVO_OK : fail_attention_token(bad_token, error);
  }
};

}  // namespace

const Reference& attention_reference() {
  static constexpr Reference kReference = reference_entry<AttentionReference>();
  return kReference;
}

}  // namespace pavo::cpu
