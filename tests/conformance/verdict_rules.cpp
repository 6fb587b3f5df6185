#include "tests/conformance/verdict_rules.h"

#include <cstring>

namespace pavo::conformance {
namespace {

template <size_t kSize>
bool ends(const char (&text)[kSize]) {
  return std::memchr(text, '\0', kSize) != nullptr;
}

template <size_t kSize>
std::string text_of(const char (&text)[kSize]) {
  return std::string(text, strnlen(text, kSize));
}

void check_accepted(Context& context, const pavo_verdict& verdict) {
  context.expect(verdict.variant[0] != '\0', "expected the name of a kernel with an acceptance");
  context.expect(
      verdict.reason == PAVO_REASON_NONE,
      "expected no reason with an acceptance, found " + reason_name(verdict.reason));
  context.expect(verdict.workspace_bytes >= 0, "expected workspace_bytes of at least 0");
  context.expect(verdict.est_ns >= 0, "expected est_ns of at least 0");
  context.expect(
      verdict.est_source >= PAVO_EST_NONE && verdict.est_source <= PAVO_EST_MEASURED,
      "expected an est_source of 0..3, found " + std::to_string(verdict.est_source));
  context.expect(
      verdict.kv_rows_min >= 0 && verdict.kv_rows_min <= verdict.kv_rows_max,
      "expected a range of K/V rows, found " + std::to_string(verdict.kv_rows_min) + " to " +
          std::to_string(verdict.kv_rows_max));
}

void check_refused(Context& context, const pavo_verdict& verdict, size_t operands) {
  context.expect(
      verdict.reason > PAVO_REASON_NONE && verdict.reason <= PAVO_REASON_ROLE,
      "expected a reason with a refusal, found " + std::to_string(verdict.reason));
  context.expect(verdict.text[0] != '\0', "expected a text with a refusal");
  context.expect(
      verdict.operand >= -1 && verdict.operand < static_cast<int32_t>(operands),
      "expected an operand of -1 to " + std::to_string(operands - 1) + ", found " +
          std::to_string(verdict.operand));
}

}  // namespace

pavo_verdict poisoned_verdict() {
  pavo_verdict verdict;
  std::memset(static_cast<void*>(&verdict), 0xa5, sizeof verdict);
  verdict.struct_size = sizeof verdict;
  return verdict;
}

void check_verdict(Context& context, const pavo_verdict& verdict, size_t operands) {
  context.expect(verdict.struct_size == sizeof verdict, "expected struct_size to stay");
  if (!context.expect(
          verdict.decision >= PAVO_REFUSE && verdict.decision <= PAVO_ACCEPT,
          "expected a decision of 0..2, found " + std::to_string(verdict.decision)) ||
      !context.expect(
          ends(verdict.variant) && ends(verdict.text), "expected texts that end with a zero")) {
    return;
  }
  if (verdict.decision == PAVO_REFUSE) {
    check_refused(context, verdict, operands);
  } else {
    check_accepted(context, verdict);
  }
}

std::string verdict_text(const pavo_verdict& verdict) {
  if (verdict.decision == PAVO_REFUSE) {
    return "refusal, " + reason_name(verdict.reason) + ", operand " +
           std::to_string(verdict.operand) + ", " + text_of(verdict.text);
  }
  return std::string(verdict.decision == PAVO_ACCEPT ? "acceptance" : "slow acceptance") +
         ", kernel " + text_of(verdict.variant) + ", workspace " +
         std::to_string(verdict.workspace_bytes) + ", " + std::to_string(verdict.est_ns) +
         " ns, K/V rows " + std::to_string(verdict.kv_rows_min) + " to " +
         std::to_string(verdict.kv_rows_max);
}

pavo_verdict ask(const test::Backend& backend, const test::OpCase& test_case) {
  const test::CaseGraph graph(test_case);
  pavo_verdict verdict = poisoned_verdict();
  pavo_verdict* const verdicts[] = {&verdict};
  pavo_error error = test::empty_error();
  test::require_ok(
      backend.api().query_nodes(backend.plugin(), backend.caps(), &graph.graph, verdicts, &error),
      error,
      "query_nodes");
  return verdict;
}

std::string reason_name(int32_t reason) {
  constexpr const char* kNames[] = {
      "none",
      "op",
      "param",
      "type",
      "shape_range",
      "shape_multiple",
      "shape_mismatch",
      "stride",
      "alignment",
      "operand",
      "device_feature",
      "not_built",
      "workspace",
      "policy",
      "role"};
  return reason >= 0 && reason <= PAVO_REASON_ROLE ? kNames[reason] : std::to_string(reason);
}

}  // namespace pavo::conformance
