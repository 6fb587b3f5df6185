#include "tests/ops/embed_case.h"

#include <cmath>

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

}  // namespace pavo::test
