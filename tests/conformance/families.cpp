#include "tests/conformance/families.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "tests/ops/attention_case.h"
#include "tests/ops/binary_case.h"
#include "tests/ops/embed_case.h"
#include "tests/ops/expected.h"
#include "tests/ops/glu_case.h"
#include "tests/ops/kv_store_case.h"
#include "tests/ops/matmul_case.h"
#include "tests/ops/norm_case.h"
#include "tests/ops/rope_case.h"
#include "tests/quantized.h"

namespace pavo::conformance {
namespace {

using test::Expected;
using test::OpCase;
using test::OpRun;
using test::Random;

constexpr int64_t kGap = 20;  // bytes behind each row, no multiple of a vector

using Formula = std::function<std::vector<Expected>(const OpCase&)>;

// Compares every output with the formula.
std::function<Judge(const OpCase&)> judge_by(const Formula& formula) {
  return [formula](const OpCase& test_case) -> Judge {
    return [&test_case, expected = formula(test_case)](const OpRun& run) {
      std::vector<std::string> lines;
      for (size_t i = 0; i < expected.size(); ++i) {
        const uint32_t index = test_case.outputs[i];
        for (const std::string& line :
             test::compare_output(test_case.tensors[index], run.tensors[index], expected[i])) {
          lines.push_back("output " + std::to_string(i) + ", " + line);
        }
      }
      return lines;
    };
  };
}

Judge judge_pool(const OpCase& test_case) {
  return
      [expected = test::expect_kv_store(test_case)](const OpRun& run) -> std::vector<std::string> {
        const std::vector<std::byte>& actual = run.tensors[1].bytes;
        const auto [got, wanted] = std::mismatch(actual.begin(), actual.end(), expected.begin());
        if (got == actual.end()) {
          return {};
        }
        return {
            "byte " + std::to_string(got - actual.begin()) + " of the pool: expected " +
            std::to_string(static_cast<int>(*wanted)) + ", got " +
            std::to_string(static_cast<int>(*got))};
      };
}

Formula one(Expected (*formula)(const OpCase&)) {
  return [formula](const OpCase& test_case) { return std::vector<Expected>{formula(test_case)}; };
}

std::string type_text(int32_t type) {
  return pavo_type_name(type);
}

std::vector<int32_t> spread_ids(Random& random, int64_t count, int64_t most) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random.integer(0, most));
  }
  return ids;
}

std::vector<Family> embed_families() {
  std::vector<Family> families;
  for (const int32_t type : test::kWeightTypes) {
    const int64_t block = pavo_type_block_values(type);
    for (const int64_t gap : {int64_t{0}, kGap}) {
      families.push_back(
          {type_text(type) + (gap > 0 ? ", gaps" : ""),
           {{"T", 5, 300, 1, 0}, {"V", 11, 400}, {"N", 2 * block, 260 + 3 * block, block}},
           [type, gap](Random& random, const Sizes& s) {
             const auto ids = spread_ids(random, s[0], s[1] - 1);
             return test::make_embed(random, type, s[1], s[2], ids, gap);
           },
           judge_by(one(test::expect_embed)),
           {}});
    }
  }
  return families;
}

std::vector<Family> matmul_families() {
  std::vector<Family> families;
  for (const int32_t type : test::kWeightTypes) {
    const auto block = static_cast<int64_t>(pavo_type_block_values(type));
    for (const int bits : {0, 1, 2, 7}) {
      test::MatmulSizes form = {};
      form.bias = (bits & 1) != 0;
      form.precision = (bits & 2) != 0 ? PAVO_PRECISION_EXACT : PAVO_PRECISION_DEFAULT;
      form.row_gap = (bits & 4) != 0 ? kGap : 0;
      families.push_back(
          {type_text(type) + (form.bias ? ", bias" : "") +
               (form.precision == PAVO_PRECISION_EXACT ? ", exact" : "") +
               (form.row_gap > 0 ? ", gaps" : ""),
           {{"T", 3, 130, 1, 0},
            {"N", 37, 260},
            {"K", std::max<int64_t>(block, 64), 1100, block, 0}},
           [type, form](Random& random, const Sizes& s) {
             test::MatmulSizes sizes = form;
             sizes.tokens = s[0];
             sizes.columns = s[1];
             sizes.depth = s[2];
             OpCase test_case = test::make_matmul(random, type, sizes);
             test_case.weight_shift = s[1] % 2;
             return test_case;
           },
           judge_by([](const OpCase& test_case) {
             return std::vector<Expected>{
                 test::expect_matmul(test_case, test::matmul_arithmetic(test_case))};
           }),
           {}});
    }
  }
  return families;
}

std::vector<Family> norm_families() {
  std::vector<Family> families;
  for (const int32_t kind : {PAVO_NORM_RMS, PAVO_NORM_LAYER, PAVO_NORM_L2}) {
    for (int bits = 0; bits < 16; ++bits) {
      test::NormForm form;
      form.kind = kind;
      form.weight = (bits & 1) != 0;
      form.bias = (bits & 2) != 0;
      form.residual = (bits & 4) != 0;
      form.sum = (bits & 8) != 0;
      form.weight_offset = form.weight && form.bias ? 1.0F : 0.0F;
      form.row_gap = bits == 13 ? kGap : 0;
      form.weight_type = bits == 5 ? PAVO_TYPE_F16 : bits == 7 ? PAVO_TYPE_BF16 : PAVO_TYPE_F32;
      const char* kinds[] = {"rms", "layer", "l2"};
      families.push_back(
          {std::string(kinds[kind]) +
               (form.weight ? ", weight " + type_text(form.weight_type) : "") +
               (form.bias ? ", bias" : "") + (form.residual ? ", residual" : "") +
               (form.sum ? ", sum" : "") + (form.row_gap > 0 ? ", gaps" : ""),
           {{"T", 3, 200, 1, 0}, {"N", 70, 1100}},
           [form](Random& random, const Sizes& s) {
             return test::make_norm(random, {s[0], s[1]}, form);
           },
           judge_by(test::expect_norm),
           {}});
    }
  }
  return families;
}

std::vector<Family> rope_families() {
  std::vector<Family> families;
  const auto add =
      [&](const std::string& name, pavo_rope_params params, bool factors, int64_t gap) {
        // The rotated part is the whole head, rounded down to pairs, unless it is fixed.
        const bool whole = params.rotary_dims == 0;
        families.push_back(
            {name,
             {{"T", 3, 150, 1, 0},
              {"H", 2, 33},
              {"D", 64, 256, whole ? 2 : 1, whole ? 2 : params.rotary_dims}},
             [params, factors, gap, whole](Random& random, const Sizes& s) {
               pavo_rope_params p = params;
               p.rotary_dims = whole ? static_cast<int32_t>(s[2]) : p.rotary_dims;
               return test::make_rope(random, {s[0], s[1], s[2]}, p, 37, factors, gap);
             },
             judge_by(one(test::expect_rope)),
             {}});
      };
  for (const int32_t mode : {PAVO_ROPE_NORMAL, PAVO_ROPE_NEOX}) {
    const std::string name = mode == PAVO_ROPE_NORMAL ? "normal" : "neox";
    pavo_rope_params p = test::rope_params(mode, 0);
    add(name, p, false, 0);
    add(name + ", gaps", p, false, kGap);
    p.rotary_dims = 32;
    add(name + ", partial", p, false, 0);
    p.freq_scale = 0.25F;
    add(name + ", scaled, factors", p, true, 0);
    p.ext_factor = 1.0F;
    p.beta_fast = 32.0F;
    p.beta_slow = 1.0F;
    p.original_context = 4096;
    p.magnitude = 1.1386F;
    add(name + ", yarn", p, false, 0);
  }
  pavo_rope_params sections = test::rope_params(PAVO_ROPE_SECTIONS, 48);
  sections.section_0 = 8;
  sections.section_1 = 12;
  sections.section_2 = 4;
  add("sections", sections, false, 0);
  return families;
}

std::vector<Family> kv_store_families() {
  std::vector<Family> families;
  for (const int32_t type : test::kKvTypes) {
    for (const int64_t gap : {int64_t{0}, kGap}) {
      families.push_back(
          {type_text(type) + (gap > 0 ? ", gaps" : ""),
           {{"T", 4, 130, 1, 0}, {"G", 2, 9}, {"D", 64, 260}},
           [type, gap](Random& random, const Sizes& s) {
             // Distinct rows in a mixed order, every fifth token is padding.
             const int64_t pages = s[0] / PAVO_KV_PAGE_ROWS + 2;
             std::vector<int32_t> rows(static_cast<size_t>(pages * PAVO_KV_PAGE_ROWS));
             std::iota(rows.begin(), rows.end(), 0);
             for (size_t i = rows.size() - 1; i > 0; --i) {
               std::swap(
                   rows[i], rows[static_cast<size_t>(random.integer(0, static_cast<int64_t>(i)))]);
             }
             rows.resize(static_cast<size_t>(s[0]));
             for (size_t i = 4; i < rows.size(); i += 5) {
               rows[i] = -1;
             }
             return test::make_kv_store(
                 random, type, pages, s[1], s[2], rows, random.normals(s[0] * s[1] * s[2], 2), gap);
           },
           judge_pool,
           {}});
    }
  }
  return families;
}

Family attention_family(const std::string& name, const test::AttentionForm& form) {
  const bool wide = form.k_type == PAVO_TYPE_F32 && form.v_type == PAVO_TYPE_F32;
  const bool prompt = form.tokens.front() > 1;
  const auto fill = [form, prompt](const Sizes& s) {
    test::AttentionForm sized = form;
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
      [fill](Random& random, const Sizes& s) { return test::make_attention(random, fill(s)); },
      judge_by([wide](const OpCase& test_case) {
        const auto used = wide ? test::Arithmetic::kF32 : test::Arithmetic::kHalf;
        return std::vector<Expected>{test::expect_attention(test_case, used)};
      }),
      [](const Sizes& s) { return std::max(s[0], s[1]); },
      8,
      2};
}

std::vector<Family> attention_families() {
  std::vector<Family> families;
  test::AttentionForm base;
  base.head_dim = base.value_dim = 64;
  for (const int32_t k_type : test::kKvTypes) {
    for (const int32_t v_type : test::kKvTypes) {
      test::AttentionForm form = base;
      form.k_type = k_type;
      form.v_type = v_type;
      const std::string name = type_text(k_type) + " and " + type_text(v_type);
      families.push_back(attention_family(name, form));
      if (k_type == v_type) {
        form.tokens = {7};
        families.push_back(attention_family(name + ", prompt", form));
      }
    }
  }
  const auto add = [&](const std::string& name, auto&& change) {
    test::AttentionForm form = base;
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
  test::AttentionForm list = base;
  list.list_rows = 9;
  families.push_back(attention_family("row list", list));
  return families;
}

std::vector<Family> glu_families() {
  std::vector<Family> families;
  const std::pair<int32_t, const char*> kinds[] = {
      {PAVO_GLU_SILU, "silu"},
      {PAVO_GLU_GELU_TANH, "gelu_tanh"},
      {PAVO_GLU_GELU_ERF, "gelu_erf"},
      {PAVO_GLU_CLAMPED, "clamped"}};
  for (const auto& [kind, name] : kinds) {
    for (const bool packed : {false, true}) {
      for (const int64_t gap : {int64_t{0}, kGap}) {
        const test::GluForm form = {kind, packed, gap};
        families.push_back(
            {std::string(name) + (packed ? ", packed" : "") + (gap > 0 ? ", gaps" : ""),
             {{"T", 3, 200, 1, 0}, {"N", 70, 1100}},
             [form](Random& random, const Sizes& s) {
               return test::make_glu(random, {s[0], s[1]}, form);
             },
             judge_by(one(test::expect_glu)),
             {}});
      }
    }
  }
  return families;
}

std::vector<Family> binary_families() {
  std::vector<Family> families;
  const std::pair<int32_t, const char*> kinds[] = {
      {PAVO_BINARY_ADD, "add"}, {PAVO_BINARY_SUB, "sub"}, {PAVO_BINARY_MUL, "mul"}};
  const std::pair<int, const char*> shapes[] = {
      {0, "same shape"}, {1, "row"}, {2, "column"}, {3, "weight"}};
  for (const auto& [kind, kind_name] : kinds) {
    for (const auto& [shape, shape_name] : shapes) {
      for (const int64_t gap : {int64_t{0}, kGap}) {
        families.push_back(
            {std::string(kind_name) + ", " + shape_name + (gap > 0 ? ", gaps" : ""),
             {{"T", 3, 200, 1, 0}, {"N", 70, 1100}},
             [kind = kind, shape = shape, gap](Random& random, const Sizes& s) {
               test::HostTensor b = shape == 0 ? test::random_activation(random, {s[0], s[1]}, gap)
                                    : shape == 1 ? test::random_activation(random, {s[1]})
                                    : shape == 2 ? test::random_activation(random, {s[0], 1})
                                                 : test::weight_f32(random.normals(s[1]));
               return test::make_binary(random, kind, {s[0], s[1]}, std::move(b), gap);
             },
             judge_by(one(test::expect_binary)),
             {}});
      }
    }
  }
  return families;
}

}  // namespace

std::vector<Family> families_of(int32_t op) {
  switch (op) {
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) \
  case id:                                                          \
    return name##_families();
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
    default:
      return {};
  }
}

const std::vector<OpName>& all_ops() {
  static const std::vector<OpName> ops = {
#define PAVO_FIELD(type, name)
#define PAVO_OP(name, id, in_min, in_max, out_min, out_max, fields) {id, #name},
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
  };
  return ops;
}

std::string sizes_text(const Family& family, const Sizes& sizes) {
  std::string text;
  for (size_t i = 0; i < sizes.size(); ++i) {
    text += std::string(i == 0 ? "" : " ") + family.axes[i].name + "=" + std::to_string(sizes[i]);
  }
  return text;
}

Sizes base_sizes(const Family& family) {
  Sizes sizes;
  for (const Axis& axis : family.axes) {
    sizes.push_back(axis.base);
  }
  return sizes;
}

}  // namespace pavo::conformance
