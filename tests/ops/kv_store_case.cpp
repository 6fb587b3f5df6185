#include "tests/ops/kv_store_case.h"

#include <algorithm>
#include <cmath>

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

}  // namespace pavo::test
