#include "tests/ops/embed_case.h"

#include <cmath>
#include <vector>

#include "tests/ops/family.h"
#include "tests/quantized.h"

namespace pavo::test {

OpCase make_embed(
    Random& random,
    int32_t type,
    int64_t vocabulary,
    int64_t columns,
    const std::vector<int32_t>& ids,
    int64_t row_gap) {
  OpCase result;
  result.set_params(pavo_op_embed, pavo_embed_params{});
  result.add_input(weight(
      type,
      {vocabulary, columns},
      random_weights(random, type, vocabulary * columns),
      PAVO_USE_GATHER));
  const auto tokens = static_cast<int64_t>(ids.size());
  result.add_input(step({tokens}, ids));
  result.add_output(output({tokens, columns}, row_gap));
  return result;
}

Expected expect_embed(const OpCase& test_case) {
  Expected expected;
  const HostTensor& table = test_case.tensors[0];
  const HostTensor& ids = test_case.tensors[1];
  const int64_t columns = table.desc.shape[1];
  for (int64_t t = 0; t < ids.elements(); ++t) {
    const auto id = read_as<int32_t>(ids.bytes.data() + ids.offset(t));
    const bool valid = id >= 0 && id < table.desc.shape[0];
    const int64_t row_bytes = pavo_type_row_bytes(table.desc.type, columns);
    for (int64_t i = 0; i < columns; ++i) {
      const double value =
          valid ? row_value(table.desc.type, table.bytes.data() + id * row_bytes, i) : 0.0;
      expected.add(value, chain_tolerance(4, std::fabs(value) + 1));
    }
  }
  return expected;
}

namespace {

std::vector<int32_t> spread_ids(Random& random, int64_t count, int64_t most) {
  std::vector<int32_t> ids(static_cast<size_t>(count));
  for (int32_t& id : ids) {
    id = static_cast<int32_t>(random.integer(0, most));
  }
  return ids;
}

}  // namespace

std::vector<Family> embed_families() {
  std::vector<Family> families;
  for (const int32_t type : kWeightTypes) {
    const int64_t block = pavo_type_block_values(type);
    for (const int64_t gap : {int64_t{0}, kFamilyGap}) {
      families.push_back(
          {type_text(type) + (gap > 0 ? ", gaps" : ""),
           {{"T", 5, 300, 1, 0}, {"V", 11, 400}, {"N", 2 * block, 260 + 3 * block, block}},
           [type, gap](Random& random, const Sizes& s) {
             const auto ids = spread_ids(random, s[0], s[1] - 1);
             return make_embed(random, type, s[1], s[2], ids, gap);
           },
           judge_by(one(expect_embed)),
           {}});
    }
  }
  return families;
}

}  // namespace pavo::test
