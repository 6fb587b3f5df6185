#include "tests/ops/kv_store_case.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/ops/family.h"
#include "tests/quantized.h"

namespace pavo::test {
namespace {

// Bytes of one row by the rules of quant.h, written value by value.
void store_row(
    int32_t type, const HostTensor& x, int64_t first, int64_t dim, std::byte* head, int64_t row) {
  pavo_kv_layout layout{};
  pavo_kv_layout_init(type, dim, &layout);
  std::byte* low = head + layout.low_offset + row * layout.low_row_bytes;
  for (int64_t i = 0; type != PAVO_TYPE_Q8_0 && i < dim; ++i) {
    const float value = x.at(first + i);
    const uint16_t half = type == PAVO_TYPE_F16 ? pavo_f32_to_f16(value) : pavo_f32_to_bf16(value);
    if (type == PAVO_TYPE_F32) {
      std::memcpy(low + 4 * i, &value, 4);
    } else {
      std::memcpy(low + 2 * i, &half, 2);
    }
  }
  for (int64_t i = 0; type == PAVO_TYPE_Q8_0 && i < layout.low_row_bytes; ++i) {
    float amax = 0;
    for (int64_t k = i / 32 * 32; k < std::min(dim, i / 32 * 32 + 32); ++k) {
      amax = std::max(amax, std::fabs(x.at(first + k)));
    }
    float inverse = 0;
    const uint16_t scale = pavo_q8_0_scale(amax, &inverse);
    const int8_t quant = i < dim ? pavo_q8_0_quant(x.at(first + i), inverse) : int8_t{0};
    std::memcpy(low + i, &quant, 1);
    std::memcpy(head + layout.scale_offset + row * layout.scale_row_bytes + i / 32 * 2, &scale, 2);
  }
}

}  // namespace

OpCase make_kv_store(
    Random& random,
    int32_t type,
    int64_t pages,
    int64_t heads,
    int64_t dim,
    const std::vector<int32_t>& slots,
    const std::vector<float>& values,
    int64_t row_gap) {
  const auto tokens = static_cast<int64_t>(slots.size());
  OpCase result;
  result.set_params(pavo_op_kv_store, pavo_kv_store_params{});
  result.add_input(activation({tokens, heads, dim}, values, row_gap));
  result.add_input(kv_pool(type, pages, heads, dim, random_pages(random, type, pages, heads, dim)));
  result.add_input(step({tokens}, slots));
  result.outputs.push_back(1);
  return result;
}

std::vector<std::byte> expect_kv_store(const OpCase& test_case) {
  const HostTensor& x = test_case.tensors[0];
  HostTensor expected = test_case.tensors[1];
  const int64_t heads = x.desc.shape[1];
  const int64_t dim = x.desc.shape[2];
  pavo_kv_layout layout{};
  pavo_kv_layout_init(expected.desc.type, dim, &layout);
  for (int64_t r = 0; r < x.desc.shape[0] * heads; ++r) {
    const HostTensor& slots = test_case.tensors[2];
    const auto slot = read_as<int32_t>(slots.bytes.data() + slots.offset(r / heads));
    if (slot >= 0) {
      std::byte* head = expected.bytes.data() +
                        (slot / PAVO_KV_PAGE_ROWS * heads + r % heads) * layout.head_bytes;
      store_row(expected.desc.type, x, r * dim, dim, head, slot % PAVO_KV_PAGE_ROWS);
    }
  }
  return expected.bytes;
}

namespace {

Judge judge_pool(const OpCase& test_case) {
  return [expected = expect_kv_store(test_case)](const OpRun& run) -> std::vector<std::string> {
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

}  // namespace

std::vector<Family> kv_store_families() {
  std::vector<Family> families;
  for (const int32_t type : kKvTypes) {
    for (const int64_t gap : {int64_t{0}, kFamilyGap}) {
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
             return make_kv_store(
                 random, type, pages, s[1], s[2], rows, random.normals(s[0] * s[1] * s[2], 2), gap);
           },
           judge_pool,
           {}});
    }
  }
  return families;
}

}  // namespace pavo::test
