#include "tests/kernels/ops/attention_case.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "plugins/cpu/dequantize.h"
#include "plugins/cpu/kv_quantize.h"

namespace pavo::cuda::testing {
namespace {

// K or V of all sequences, and the pool that holds them. What no sequence holds is NaN where the
// type can say so.
class TestPool {
 public:
  TestPool(int32_t type, int64_t pages, int64_t heads, int64_t dims)
      : type_(type), heads_(heads), dims_(dims), shape_{pages, heads, PAVO_KV_PAGE_ROWS, dims} {
    pavo_kv_layout_init(type, dims, &layout_);
    bytes_.assign(static_cast<size_t>(pages * heads * layout_.head_bytes), std::byte{0xff});
  }
  void fill_row(int64_t page, int64_t row, std::mt19937& random) {
    for (int64_t head = 0; head < heads_; ++head) {
      const std::vector<float> values = random_values(dims_, random);
      cpu::quantize_kv_row(type_, layout_, values.data(), dims_, at(page, head), row);
    }
  }
  std::vector<float> row(int64_t page, int64_t head, int64_t row) {
    std::vector<float> values(static_cast<size_t>(dims_));
    cpu::dequantize_kv_row(type_, layout_, at(page, head), row, dims_, values.data());
    return values;
  }
  void add_to(NodeFixture& node) const { node.pool(type_, shape_, bytes_); }

 private:
  std::byte* at(int64_t page, int64_t head) {
    return bytes_.data() + (page * heads_ + head) * layout_.head_bytes;
  }

  int32_t type_;
  int64_t heads_, dims_;
  std::vector<int64_t> shape_;
  pavo_kv_layout layout_{};
  std::vector<std::byte> bytes_;
};

class AttentionRun {
 public:
  explicit AttentionRun(const AttentionCase& c)
      : c_(c), keys_(pool(c, true)), values_(pool(c, false)) {
    fill_pages();
    fill_tokens();
    fill_options();
  }

  std::string difference(const Kernel& kernel, std::vector<std::string>* launched) {
    NodeFixture node(pavo_op_attention);
    const uint32_t out = describe(node);
    const std::string refusal = node.run(kernel, launched);
    if (!refusal.empty()) {
      return "refused: " + refusal;
    }
    return compare(node.values(out));
  }

 private:
  static int64_t page_count(const AttentionCase& c) {
    int64_t most = 1;
    for (const AttentionSequence& s : c.sequences) {
      most = std::max<int64_t>(most, (s.length + PAVO_KV_PAGE_ROWS - 1) / PAVO_KV_PAGE_ROWS);
    }
    return most;
  }
  static TestPool pool(const AttentionCase& c, bool keys) {
    const auto sequences = static_cast<int64_t>(c.sequences.size());
    return TestPool(
        keys ? c.key_type : c.value_type,
        sequences * page_count(c) + 1,
        c.kv_heads,
        keys ? c.key_dims : c.value_dims);
  }

  void fill_pages() {
    const int64_t pages = page_count(c_);
    std::vector<int32_t> order(c_.sequences.size() * static_cast<size_t>(pages) + 1);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    size_t taken = 0;
    for (const AttentionSequence& s : c_.sequences) {
      for (int64_t p = 0; p < pages; ++p) {
        const int64_t rows = std::clamp<int64_t>(s.length - p * PAVO_KV_PAGE_ROWS, 0, 64);
        const bool seen =
            c_.window == 0 || (p + 1) * PAVO_KV_PAGE_ROWS > s.length - s.tokens - c_.window + 1;
        page_table_.push_back(rows > 0 && seen ? order[taken] : -1);
        for (int64_t row = 0; row < rows; ++row) {
          keys_.fill_row(order[taken], row, random_);
          values_.fill_row(order[taken], row, random_);
        }
        ++taken;
      }
    }
    if (c_.lost_page >= 0) {
      page_table_[static_cast<size_t>(c_.lost_page)] = 1 << 20;
    }
  }

  void fill_tokens() {
    seq_rows_.push_back(0);
    for (size_t s = 0; s < c_.sequences.size(); ++s) {
      for (int32_t i = 0; i < c_.sequences[s].tokens; ++i) {
        rows_.push_back(c_.sequences[s].length - c_.sequences[s].tokens + i);
        row_seq_.push_back(static_cast<int32_t>(s));
      }
      seq_rows_.push_back(static_cast<int32_t>(rows_.size()));
      lengths_.push_back(c_.sequences[s].length);
    }
    rows_.resize(rows_.size() + static_cast<size_t>(c_.padding));
    row_seq_.resize(rows_.size(), -1);
    if (c_.lost_token >= 0) {
      row_seq_[static_cast<size_t>(c_.lost_token)] = -1;
    }
  }

  void fill_options() {
    const auto tokens = static_cast<int64_t>(rows_.size());
    query_ = random_values(tokens * c_.heads * c_.key_dims, random_);
    sinks_ = random_values(c_.heads, random_);
    for (int64_t h = 0; h < c_.heads; ++h) {
      slopes_.push_back(
          std::exp2(-8.0f * static_cast<float>(h + 1) / static_cast<float>(c_.heads)));
    }
    mask_ = random_values(tokens * c_.mask_columns, random_);
    for (size_t i = 0; i < mask_.size(); i += 3) {
      mask_[i] = -std::numeric_limits<float>::infinity();
    }
    for (int64_t t = 0; t < tokens && c_.list_columns > 0; ++t) {
      const int32_t s = row_seq_[static_cast<size_t>(t)];
      for (int64_t i = 0; i < c_.list_columns; ++i) {
        const int32_t length = s < 0 ? 1 : c_.sequences[static_cast<size_t>(s)].length;
        std::uniform_int_distribution<int32_t> any(0, std::max(length, 1) - 1);
        // Lists of different lengths; what lies behind the end is not to be read.
        list_.push_back(i == c_.list_columns - 1 - t ? -1 : any(random_));
      }
    }
  }

  template <typename T>
  static std::vector<std::byte> bytes_of(const std::vector<T>& values) {
    const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
    return {bytes, bytes + values.size() * sizeof(T)};
  }

  uint32_t describe(NodeFixture& node) const {
    pavo_attention_params params{};
    params.scale = 1.0f / std::sqrt(static_cast<float>(c_.key_dims));
    params.softcap = c_.softcap;
    params.causal = c_.causal;
    params.window = c_.window;
    params.value_dim = c_.values_in_keys ? static_cast<int32_t>(c_.value_dims) : 0;
    node.params(params);
    node.caps.sm_count = c_.sm_count;
    node.caps.shared_bytes_per_block = 48 * 1024;
    node.bucket.kv_rows = page_count(c_) * PAVO_KV_PAGE_ROWS;
    const auto tokens = static_cast<int64_t>(rows_.size());
    const auto sequences = static_cast<int64_t>(lengths_.size());
    node.activation({tokens, c_.heads, c_.key_dims}, query_, c_.placing);
    keys_.add_to(node);
    c_.values_in_keys ? node.absent() : values_.add_to(node);
    node.indices(rows_);
    node.indices(row_seq_);
    node.indices(seq_rows_);
    node.indices(lengths_);
    node.indices({sequences, page_count(c_)}, page_table_);
    const auto vector = [&](const std::vector<float>& values) {
      node.weight(PAVO_TYPE_F32, PAVO_USE_DENSE, {c_.heads}, bytes_of(values));
    };
    c_.sinks ? vector(sinks_) : node.absent();
    c_.slopes ? vector(slopes_) : node.absent();
    if (c_.mask_columns > 0) {
      node.activation({tokens, c_.mask_columns}, mask_, c_.placing);
    } else {
      node.absent();
    }
    if (c_.list_columns > 0) {
      node.indices({tokens, c_.list_columns}, list_);
    } else {
      node.absent();
    }
    return node.output({tokens, c_.heads, c_.value_dims}, c_.placing);
  }

  std::vector<int32_t> visited(size_t t, int32_t length) const {
    std::vector<int32_t> out;
    const int64_t candidates = c_.list_columns > 0 ? c_.list_columns : length;
    for (int64_t i = 0; i < candidates; ++i) {
      const int32_t j =
          c_.list_columns > 0
              ? list_[t * static_cast<size_t>(c_.list_columns) + static_cast<size_t>(i)]
              : static_cast<int32_t>(i);
      if (j < 0) {
        break;
      }
      if ((c_.causal == 0 || j <= rows_[t]) && (c_.window == 0 || j > rows_[t] - c_.window)) {
        out.push_back(j);
      }
    }
    return out;
  }

  std::vector<double> truth(size_t t, int64_t head) {
    std::vector<double> out(static_cast<size_t>(c_.value_dims));
    const int32_t sequence = row_seq_[t];
    if (sequence < 0) {
      return out;
    }
    const int32_t length = lengths_[static_cast<size_t>(sequence)];
    const int64_t kv_head = head / (c_.heads / c_.kv_heads);
    double total = c_.sinks ? std::exp(static_cast<double>(sinks_[static_cast<size_t>(head)])) : 0;
    for (const int32_t j : visited(t, length)) {
      const auto entry = static_cast<size_t>(sequence * page_count(c_) + j / PAVO_KV_PAGE_ROWS);
      if (static_cast<int32_t>(entry) == c_.lost_page) {
        continue;
      }
      const int32_t page = page_table_[entry];
      const std::vector<float> k = keys_.row(page, kv_head, j % PAVO_KV_PAGE_ROWS);
      const std::vector<float> v =
          c_.values_in_keys ? k : values_.row(page, kv_head, j % PAVO_KV_PAGE_ROWS);
      const float* q =
          query_.data() + (t * static_cast<size_t>(c_.heads) + static_cast<size_t>(head)) *
                              static_cast<size_t>(c_.key_dims);
      double score = 0;
      for (size_t d = 0; d < k.size(); ++d) {
        score += static_cast<double>(q[d]) * static_cast<double>(k[d]);
      }
      score /= std::sqrt(static_cast<double>(c_.key_dims));
      if (c_.softcap > 0) {
        score = c_.softcap * std::tanh(score / c_.softcap);
      }
      if (c_.slopes) {
        score += static_cast<double>(slopes_[static_cast<size_t>(head)]) * (j - rows_[t]);
      }
      const int64_t column = j - (length - c_.mask_columns);
      if (c_.mask_columns > 0 && column >= 0) {
        score += mask_[t * static_cast<size_t>(c_.mask_columns) + static_cast<size_t>(column)];
      }
      const double weight = std::exp(score);
      total += weight;
      for (size_t d = 0; d < out.size(); ++d) {
        out[d] += weight * static_cast<double>(v[d]);
      }
    }
    for (double& value : out) {
      value = total > 0 ? value / total : 0.0;
    }
    return out;
  }

  // Values are of a size near one, sums of weights are one: an absolute bound does.
  std::string compare(const std::vector<float>& got) {
    constexpr double kBound = 4e-6;
    size_t i = 0;
    for (size_t t = 0; t < rows_.size(); ++t) {
      for (int64_t h = 0; h < c_.heads; ++h) {
        const std::vector<double> want = truth(t, h);
        for (size_t d = 0; d < want.size(); ++d, ++i) {
          if (!(std::fabs(static_cast<double>(got[i]) - want[d]) <= kBound)) {
            return "token " + std::to_string(t) + ", head " + std::to_string(h) + ", value " +
                   std::to_string(d) + ": expected " + std::to_string(want[d]) + ", got " +
                   std::to_string(got[i]);
          }
        }
      }
    }
    return "";
  }

  const AttentionCase& c_;
  std::mt19937 random_{17};
  TestPool keys_, values_;
  std::vector<float> query_, sinks_, slopes_, mask_;
  std::vector<int32_t> rows_, row_seq_, seq_rows_, lengths_, page_table_, list_;
};

}  // namespace

std::string attention_difference(
    const AttentionCase& c, const Kernel& kernel, std::vector<std::string>* launched) {
  return AttentionRun(c).difference(kernel, launched);
}

}  // namespace pavo::cuda::testing
