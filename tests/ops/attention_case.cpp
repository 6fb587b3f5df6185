#include "tests/ops/attention_case.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/ops/family.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

// Positions of the inputs.
enum : size_t {
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

int32_t int_at(const HostTensor& tensor, int64_t index) {
  return read_as<int32_t>(tensor.bytes.data() + tensor.offset(index));
}

const HostTensor* input(const OpCase& test_case, size_t index) {
  const bool there = index < test_case.inputs.size() && test_case.inputs[index] != PAVO_NO_TENSOR;
  return there ? &test_case.tensors[test_case.inputs[index]] : nullptr;
}

// An input that every attention has.
const HostTensor& required(const OpCase& test_case, size_t index) {
  return test_case.tensors[test_case.inputs[index]];
}

// Pages in random order, with some that no sequence uses; unused places of the table hold -7, which
// no kernel may follow.
std::vector<int32_t> make_page_table(
    Random& random, const std::vector<int32_t>& lengths, int64_t columns, int64_t pages) {
  std::vector<int32_t> free(static_cast<size_t>(pages));
  std::iota(free.begin(), free.end(), 0);
  for (size_t i = free.size(); i > 1; --i) {
    std::swap(
        free[i - 1], free[static_cast<size_t>(random.integer(0, static_cast<int64_t>(i) - 1))]);
  }
  std::vector<int32_t> table(lengths.size() * static_cast<size_t>(columns), -7);
  for (size_t s = 0; s < lengths.size(); ++s) {
    for (int64_t page = 0; page * PAVO_KV_PAGE_ROWS < lengths[s]; ++page) {
      table[s * static_cast<size_t>(columns) + static_cast<size_t>(page)] = free.back();
      free.pop_back();
    }
  }
  return table;
}

// The four step tensors that say whose the tokens are.
void add_tokens(const AttentionForm& form, int64_t tokens, OpCase* result) {
  std::vector<int32_t> rows;
  std::vector<int32_t> row_seq;
  std::vector<int32_t> seq_rows = {0};
  for (size_t s = 0; s < form.lengths.size(); ++s) {
    for (int32_t i = 0; i < form.tokens[s]; ++i) {
      rows.push_back(form.lengths[s] - form.tokens[s] + i);
      row_seq.push_back(static_cast<int32_t>(s));
    }
    seq_rows.push_back(static_cast<int32_t>(rows.size()));
  }
  rows.resize(static_cast<size_t>(tokens), 0);
  row_seq.resize(static_cast<size_t>(tokens), -1);
  const auto sequences = static_cast<int64_t>(form.lengths.size());
  result->add_input(step({tokens}, rows));
  result->add_input(step({tokens}, row_seq));
  result->add_input(step({sequences + 1}, seq_rows));
  result->add_input(step({sequences}, form.lengths));
}

void add_optional(Random& random, const AttentionForm& form, int64_t tokens, OpCase* result) {
  const auto add_or_skip = [&](bool present, auto make) {
    if (present) {
      result->add_input(make());
    } else {
      result->skip_input();
    }
  };
  add_or_skip(form.sinks, [&] { return weight_f32(random.normals(form.heads, 2)); });
  add_or_skip(form.slopes, [&] {
    std::vector<float> slopes;
    for (int64_t h = 0; h < form.heads; ++h) {
      slopes.push_back(std::exp2(-static_cast<float>(h + 1)));
    }
    return weight_f32(slopes);
  });
  add_or_skip(form.mask_rows > 0, [&] {
    std::vector<float> mask = random.normals(tokens * form.mask_rows);
    for (size_t i = 0; i < mask.size(); i += 3) {
      mask[i] = -INFINITY;
    }
    return step_f32({tokens, form.mask_rows}, mask);
  });
  add_or_skip(form.list_rows > 0, [&] {
    std::vector<int32_t> list;
    for (int64_t t = 0; t < tokens; ++t) {
      // Distinct rows in falling order; the list of every second token ends early.
      const int64_t length = form.lengths[0];
      for (int64_t i = 0; i < form.list_rows; ++i) {
        const int64_t row = length - 1 - 2 * i;
        list.push_back(row < 0 || (t % 2 == 1 && i >= 2) ? -1 : static_cast<int32_t>(row));
      }
    }
    return step({tokens, form.list_rows}, list);
  });
}

class Formula {
 public:
  Formula(const OpCase& test_case, Arithmetic arithmetic)
      : case_(test_case),
        params_(read_as<pavo_attention_params>(test_case.params.data())),
        q_(required(test_case, kQ)),
        k_(required(test_case, kK)),
        v_(input(test_case, kV) != nullptr ? required(test_case, kV) : k_),
        k_values_(decode(k_)),
        v_values_(decode(v_)),
        dims_(test_case.output_tensor(0).desc.shape[2]),
        arithmetic_(arithmetic) {}

  void add(int64_t t, int64_t h, Expected* expected) const {
    const int32_t sequence = int_at(required(case_, kRowSeq), t);
    std::vector<double> sums(static_cast<size_t>(dims_), 0.0);
    double total = 0;
    double largest_score = 0;
    double largest_value = 0;
    if (sequence >= 0) {
      const std::vector<int64_t> rows = visible(t, sequence);
      std::vector<double> scores;
      double largest = -INFINITY;
      for (const int64_t j : rows) {
        double norms = 0;
        scores.push_back(score(t, h, sequence, j, &norms));
        largest = std::max(largest, scores.back());
        largest_score = std::max(largest_score, norms);
      }
      if (const HostTensor* sinks = input(case_, kSinks)) {
        largest = std::max(largest, static_cast<double>(sinks->at(h)));
        total = std::exp(static_cast<double>(sinks->at(h)) - largest);
      }
      for (size_t i = 0; i < rows.size() && largest > -INFINITY; ++i) {
        const double weight = std::exp(scores[i] - largest);
        total += weight;
        const double* row = kv(v_, v_values_, sequence, rows[i], h);
        for (int64_t d = 0; d < dims_; ++d) {
          const double value = row[d];
          sums[static_cast<size_t>(d)] += weight * value;
          largest_value = std::max(largest_value, std::fabs(value));
        }
      }
    }
    const double tolerance =
        attention_tolerance(arithmetic_, q_.desc.shape[2], largest_score, largest_value);
    for (const double sum : sums) {
      expected->add(total > 0 ? sum / total : 0.0, total > 0 ? tolerance : 0.0);
    }
  }

 private:
  std::vector<int64_t> visible(int64_t t, int32_t sequence) const {
    const int64_t length = int_at(required(case_, kLengths), sequence);
    const int64_t own = int_at(required(case_, kRows), t);
    const HostTensor* list = input(case_, kRowList);
    const int64_t count = list != nullptr ? list->desc.shape[1] : length;
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t j = list != nullptr ? int_at(*list, t * count + i) : i;
      if (j < 0) {
        break;
      }
      if ((params_.causal == 0 || j <= own) && (params_.window == 0 || j > own - params_.window)) {
        rows.push_back(j);
      }
    }
    return rows;
  }

  // All values of a pool in the order [page][head][row][dim].
  static std::vector<double> decode(const HostTensor& pool) {
    const int64_t dim = pool.desc.shape[3];
    const int64_t heads = pool.desc.shape[0] * pool.desc.shape[1];
    pavo_kv_layout layout{};
    pavo_kv_layout_init(pool.desc.type, dim, &layout);
    std::vector<double> values;
    for (int64_t i = 0; i < heads * PAVO_KV_PAGE_ROWS * dim; ++i) {
      const int64_t row = i / dim;
      const std::byte* head = pool.bytes.data() + row / PAVO_KV_PAGE_ROWS * layout.head_bytes;
      values.push_back(page_value(pool.desc.type, dim, head, row % PAVO_KV_PAGE_ROWS, i % dim));
    }
    return values;
  }

  // Row j of a sequence for query head h.
  const double* kv(
      const HostTensor& pool,
      const std::vector<double>& values,
      int32_t sequence,
      int64_t j,
      int64_t h) const {
    const HostTensor& table = required(case_, kPageTable);
    const int64_t page = int_at(table, sequence * table.desc.shape[1] + j / PAVO_KV_PAGE_ROWS);
    const int64_t kv_heads = pool.desc.shape[1];
    const int64_t g = h / (q_.desc.shape[1] / kv_heads);
    const int64_t row = (page * kv_heads + g) * PAVO_KV_PAGE_ROWS + j % PAVO_KV_PAGE_ROWS;
    return values.data() + row * pool.desc.shape[3];
  }

  // *norms: scale * |q| * |k|, and what is added to the product.
  double score(int64_t t, int64_t h, int32_t sequence, int64_t j, double* norms) const {
    double dot = 0;
    double q_norm = 0;
    double k_norm = 0;
    const int64_t dim = q_.desc.shape[2];
    const double* row = kv(k_, k_values_, sequence, j, h);
    for (int64_t d = 0; d < dim; ++d) {
      const auto q = static_cast<double>(q_.at((t * q_.desc.shape[1] + h) * dim + d));
      const double k = row[d];
      dot += q * k;
      q_norm += q * q;
      k_norm += k * k;
    }
    const auto scale = static_cast<double>(params_.scale);
    *norms = scale * std::sqrt(q_norm * k_norm);
    double score = scale * dot;
    if (params_.softcap > 0.0F) {
      const auto cap = static_cast<double>(params_.softcap);
      score = cap * std::tanh(score / cap);
    }
    double bias = 0;
    if (const HostTensor* slopes = input(case_, kSlopes)) {
      bias = static_cast<double>(slopes->at(h)) *
             static_cast<double>(j - int_at(required(case_, kRows), t));
      *norms += std::fabs(bias);
    }
    if (const HostTensor* mask = input(case_, kMask)) {
      const int64_t columns = mask->desc.shape[1];
      const int64_t column = j - int_at(required(case_, kLengths), sequence) + columns;
      bias += column >= 0 ? static_cast<double>(mask->at(t * columns + column)) : 0.0;
    }
    return score + bias;
  }

  const OpCase& case_;
  pavo_attention_params params_;
  const HostTensor& q_;
  const HostTensor& k_;
  const HostTensor& v_;
  std::vector<double> k_values_;
  std::vector<double> v_values_;
  int64_t dims_;
  Arithmetic arithmetic_;
};

}  // namespace

OpCase make_attention(Random& random, const AttentionForm& form) {
  OpCase result;
  const float scale = 1.0F / std::sqrt(static_cast<float>(form.head_dim));
  result.set_params(
      pavo_op_attention,
      pavo_attention_params{
          0, scale, form.softcap, form.causal, form.window, static_cast<int32_t>(form.value_dim)});
  const int64_t tokens = std::accumulate(form.tokens.begin(), form.tokens.end(), form.padding);
  const int32_t longest = *std::max_element(form.lengths.begin(), form.lengths.end());
  int64_t pages = 3;
  for (const int32_t length : form.lengths) {
    pages += (length + PAVO_KV_PAGE_ROWS - 1) / PAVO_KV_PAGE_ROWS;
  }
  result.add_input(activation(
      {tokens, form.heads, form.head_dim}, random.normals(tokens * form.heads * form.head_dim)));
  result.add_input(kv_pool(
      form.k_type,
      pages,
      form.kv_heads,
      form.head_dim,
      random_pages(random, form.k_type, pages, form.kv_heads, form.head_dim)));
  if (form.v_in_k) {
    result.skip_input();
  } else {
    result.add_input(kv_pool(
        form.v_type,
        pages,
        form.kv_heads,
        form.value_dim,
        random_pages(random, form.v_type, pages, form.kv_heads, form.value_dim)));
  }
  add_tokens(form, tokens, &result);
  const int64_t columns = (longest + PAVO_KV_PAGE_ROWS - 1) / PAVO_KV_PAGE_ROWS + form.spare_pages;
  result.add_input(step(
      {static_cast<int64_t>(form.lengths.size()), columns},
      make_page_table(random, form.lengths, columns, pages)));
  add_optional(random, form, tokens, &result);
  result.add_output(output({tokens, form.heads, form.value_dim}));
  result.bucket.tokens = static_cast<int32_t>(tokens);
  result.bucket.sequences = static_cast<int32_t>(form.lengths.size());
  result.bucket.kv_rows = longest;
  return result;
}

Expected expect_attention(const OpCase& test_case, Arithmetic arithmetic) {
  const Formula formula(test_case, arithmetic);
  Expected expected;
  const pavo_tensor& q = test_case.tensors[0].desc;
  for (int64_t i = 0; i < q.shape[0] * q.shape[1]; ++i) {
    formula.add(i / q.shape[1], i % q.shape[1], &expected);
  }
  return expected;
}

namespace {

Family attention_family(const std::string& name, const AttentionForm& form) {
  const bool wide = form.k_type == PAVO_TYPE_F32 && form.v_type == PAVO_TYPE_F32;
  const bool prompt = form.tokens.front() > 1;
  const auto fill = [form, prompt](const Sizes& s) {
    AttentionForm sized = form;
    sized.lengths = {static_cast<int32_t>(std::max(s[0], s[1])), 33};
    sized.tokens = {static_cast<int32_t>(s[1]), 1};
    if (!prompt) {
      sized.lengths.pop_back();
      sized.tokens.pop_back();
    }
    sized.kv_heads = s[2];
    sized.heads = s[2] * s[3];
    sized.head_dim = s[4];
    sized.value_dim = form.value_dim == form.head_dim ? s[4] : std::min(form.value_dim, s[4]);
    return sized;
  };
  return {
      name,
      {{"rows", 90, 200},
       {"T", form.tokens.front(), 70},
       {"G", 2, 3},
       {"H/G", 3, 17},
       {"D", form.head_dim, 260}},
      [fill](Random& random, const Sizes& s) { return make_attention(random, fill(s)); },
      judge_by([wide](const OpCase& test_case) {
        const auto used = wide ? Arithmetic::kF32 : Arithmetic::kHalf;
        return std::vector<Expected>{expect_attention(test_case, used)};
      }),
      [](const Sizes& s) { return std::max(s[0], s[1]); },
      8,
      2};
}

}  // namespace

std::vector<Family> attention_families() {
  std::vector<Family> families;
  AttentionForm base;
  base.head_dim = base.value_dim = 64;
  for (const int32_t k_type : kKvTypes) {
    for (const int32_t v_type : kKvTypes) {
      AttentionForm form = base;
      form.k_type = k_type;
      form.v_type = v_type;
      const std::string name = type_text(k_type) + " and " + type_text(v_type);
      families.push_back(attention_family(name, form));
      if (k_type != v_type) {  // sizes are gone through with each type by itself
        families.back().samples = 4;
        families.back().mixtures = 1;
      }
      if (k_type == v_type) {
        form.tokens = {7};
        families.push_back(attention_family(name + ", prompt", form));
      }
    }
  }
  const auto add = [&](const std::string& name, auto&& change) {
    AttentionForm form = base;
    form.k_type = form.v_type = PAVO_TYPE_F16;
    change(form);
    families.push_back(attention_family(name, form));
    form.tokens = {5};
    families.push_back(attention_family(name + ", prompt", form));
  };
  add("all rows", [](auto& f) { f.causal = 0; });
  add("window", [](auto& f) { f.window = 37; });
  add("softcap", [](auto& f) { f.softcap = 5; });
  add("sinks", [](auto& f) { f.sinks = true; });
  add("slopes", [](auto& f) { f.slopes = true; });
  add("padding", [](auto& f) { f.padding = 2; });
  add("spare pages", [](auto& f) { f.spare_pages = 3; });
  add("narrow values", [](auto& f) { f.value_dim = 48; });
  add("values in keys", [](auto& f) {
    f.v_in_k = true;
    f.value_dim = 48;
  });
  AttentionForm list = base;
  list.list_rows = 9;
  families.push_back(attention_family("row list", list));
  return families;
}

}  // namespace pavo::test
