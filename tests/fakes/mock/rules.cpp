#include "tests/fakes/mock/rules.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <limits>
#include <stdexcept>
#include <thread>

#include "pavo/plugin_helpers.h"

namespace pavo::mock {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const size_t at = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, at));
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return parts;
}

template <typename T>
bool take_number(std::string_view* text, T* out) {
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), *out);
  text->remove_prefix(static_cast<size_t>(end - text->data()));
  return error == std::errc();
}

bool take(std::string_view* text, std::string_view word) {
  const bool there = text->substr(0, word.size()) == word;
  text->remove_prefix(there ? word.size() : 0);
  return there;
}

int32_t type_of(std::string_view name) {
#define PAVO_TYPE_MATCH(type, id, text, values, bytes) \
  if (name == (text)) {                                \
    return id;                                         \
  }
  PAVO_TYPE_LIST(PAVO_TYPE_MATCH)
#undef PAVO_TYPE_MATCH
  return PAVO_TYPE_NONE;
}

bool parse_condition(std::string_view text, Condition* out) {
  if (take(&text, "type")) {
    out->what = Condition::What::kType;
    out->value = take_number(&text, &out->operand) && take(&text, "=") ? type_of(text) : -1;
    return out->value != PAVO_TYPE_NONE;
  }
  if (take(&text, "dim")) {
    out->what = Condition::What::kDimension;
    if (!take_number(&text, &out->operand) || !take(&text, ".") ||
        !take_number(&text, &out->dimension)) {
      return false;
    }
  } else if (take(&text, "inputs")) {
    out->what = Condition::What::kInputs;
  } else if (!take(&text, "kv_rows")) {
    return false;
  }
  if (text.empty() || std::string_view("=<>%").find(text[0]) == std::string_view::npos) {
    return false;
  }
  out->relation = text[0];
  text.remove_prefix(1);
  return take_number(&text, &out->value) && text.empty() &&
         (out->relation != '%' || out->value > 0);
}

bool parse_rule(std::string_view text, RefuseRule* out) {
  const std::vector<std::string_view> parts = split(text, ':');
  out->text = std::string(text);
  out->op = op_of(parts.at(0));
  if (out->op == 0 && parts[0] != "*") {
    return false;
  }
  for (size_t i = 1; i < parts.size(); ++i) {
    out->conditions.emplace_back();
    if (!parse_condition(parts[i], &out->conditions.back())) {
      return false;
    }
  }
  return true;
}

bool holds(const Condition& condition, int64_t actual) {
  switch (condition.relation) {
    case '<':
      return actual < condition.value;
    case '>':
      return actual > condition.value;
    case '%':
      return actual % condition.value != 0;
    default:
      return actual == condition.value;
  }
}

const pavo_tensor* operand_of(
    const pavo_graph& graph, const pavo_node& node, const Condition& condition) {
  return condition.operand < node.input_count
             ? sdk::input(graph, node, condition.operand)
             : sdk::output(graph, node, condition.operand - node.input_count);
}

int64_t given_inputs(const pavo_node& node) {
  return node.input_count - std::count(node.inputs, node.inputs + node.input_count, PAVO_NO_TENSOR);
}

bool holds(const Condition& condition, const pavo_graph& graph, const pavo_node& node) {
  if (condition.what == Condition::What::kKvRows) {
    return holds(condition, graph.bucket->kv_rows);
  }
  if (condition.what == Condition::What::kInputs) {
    return holds(condition, given_inputs(node));
  }
  const pavo_tensor* tensor = operand_of(graph, node, condition);
  if (tensor == nullptr) {
    return false;
  }
  if (condition.what == Condition::What::kType) {
    return tensor->type == condition.value;
  }
  return condition.dimension < tensor->rank && holds(condition, tensor->shape[condition.dimension]);
}

int32_t reason_of(const RefuseRule& rule) {
  if (rule.conditions.empty()) {
    return PAVO_REASON_POLICY;
  }
  const Condition& first = rule.conditions.front();
  return first.what == Condition::What::kType     ? PAVO_REASON_TYPE
         : first.what == Condition::What::kInputs ? PAVO_REASON_OPERAND
         : first.relation == '%'                  ? PAVO_REASON_SHAPE_MULTIPLE
                                                  : PAVO_REASON_SHAPE_RANGE;
}

void refuse_by(
    const RefuseRule& rule, const pavo_graph& graph, const pavo_node& node, pavo_verdict* verdict) {
  int32_t operand = -1;
  int64_t expected = 0;
  int64_t actual = 0;
  int32_t attribute = -1;
  if (!rule.conditions.empty()) {
    const Condition& first = rule.conditions.front();
    const bool whole =
        first.what == Condition::What::kKvRows || first.what == Condition::What::kInputs;
    const pavo_tensor* tensor = whole ? nullptr : operand_of(graph, node, first);
    operand = tensor == nullptr ? -1 : static_cast<int32_t>(first.operand);
    attribute = first.what == Condition::What::kDimension ? first.dimension : -1;
    expected = first.value;
    actual = first.what == Condition::What::kInputs ? given_inputs(node)
             : tensor == nullptr                    ? graph.bucket->kv_rows
             : first.what == Condition::What::kType ? tensor->type
                                                    : tensor->shape[first.dimension];
  }
  sdk::refuse(
      verdict,
      reason_of(rule),
      operand,
      attribute,
      expected,
      actual,
      "the mock was told to refuse %.120s",
      rule.text.c_str());
}

bool parse_kind(std::string_view name, FaultKind* out) {
  constexpr std::pair<std::string_view, FaultKind> kKinds[] = {
      {"error", FaultKind::kError},
      {"oom", FaultKind::kOom},
      {"throw", FaultKind::kThrow},
      {"crash", FaultKind::kCrash},
      {"hang", FaultKind::kHang},
      {"fail", FaultKind::kFail},
      {"lost", FaultKind::kLost},
      {"crash_late", FaultKind::kCrashLate},
      {"hang_late", FaultKind::kHangLate}};
  for (const auto& [word, kind] : kKinds) {
    if (word == name) {
      *out = kind;
      return true;
    }
  }
  return false;
}

int32_t bad_item(std::string_view option, std::string_view item, pavo_error* error) {
  return sdk::fail(
      error,
      PAVO_ERROR_INVALID_ARGUMENT,
      "option %.*s: '%.*s' is not understood; tests/fakes/mock/rules.h says how",
      static_cast<int>(option.size()),
      option.data(),
      static_cast<int>(item.size()),
      item.data());
}

}  // namespace

int32_t op_of(std::string_view name) {
#define PAVO_FIELD(type, field)
#define PAVO_OP(op, id, in_min, in_max, out_min, out_max, fields) \
  if (name == #op) {                                              \
    return id;                                                    \
  }
#include "pavo/ops.inc"
#undef PAVO_OP
#undef PAVO_FIELD
  return 0;
}

int32_t Rules::parse(
    std::string_view refuse, std::string_view only, std::string_view fault, pavo_error* error) {
  for (const std::string_view item : split(refuse, ',')) {
    refused_.emplace_back();
    if (!parse_rule(item, &refused_.back())) {
      return bad_item("refuse", item, error);
    }
  }
  for (const std::string_view item : split(only, ',')) {
    only_.push_back(op_of(item));
    if (only_.back() == 0) {
      return bad_item("only", item, error);
    }
  }
  for (const std::string_view item : split(fault, ',')) {
    const size_t equals = std::min(item.find('='), item.size());
    std::string_view call = item.substr(0, equals);
    FaultRule rule;
    if (const size_t at = call.find('@'); at != std::string_view::npos) {
      std::string_view number = call.substr(at + 1);
      if (!take_number(&number, &rule.at) || !number.empty() || rule.at < 1) {
        return bad_item("fault", item, error);
      }
      call = call.substr(0, at);
    }
    rule.call = std::string(call);
    if (equals == item.size() || !parse_kind(item.substr(equals + 1), &rule.kind)) {
      return bad_item("fault", item, error);
    }
    faults_.push_back(rule);
  }
  return PAVO_OK;
}

void Rules::apply(const pavo_graph& graph, const pavo_node& node, pavo_verdict* verdict) const {
  if (verdict->decision == PAVO_REFUSE) {
    return;
  }
  if (!only_.empty() && std::find(only_.begin(), only_.end(), node.op) == only_.end()) {
    sdk::refuse(verdict, PAVO_REASON_OP, -1, -1, 0, node.op, "the mock has no op %d", node.op);
    return;
  }
  for (const RefuseRule& rule : refused_) {
    if (rule.op != 0 && rule.op != node.op) {
      continue;
    }
    const bool all = std::all_of(
        rule.conditions.begin(), rule.conditions.end(), [&](const Condition& condition) {
          return holds(condition, graph, node);
        });
    if (all) {
      refuse_by(rule, graph, node, verdict);
      return;
    }
    const Condition* only = rule.conditions.size() == 1 ? rule.conditions.data() : nullptr;
    if (only != nullptr && only->what == Condition::What::kKvRows && only->relation == '>') {
      verdict->kv_rows_max = std::min(verdict->kv_rows_max, only->value);
    }
  }
}

FaultKind Rules::count(const std::string& call) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const int64_t number = ++counts_[call];
  for (const FaultRule& rule : faults_) {
    if (rule.call == call && (rule.at == 0 || rule.at == number)) {
      return rule.kind;
    }
  }
  return FaultKind::kNone;
}

FaultKind act_on(FaultKind kind, const char* call, int32_t* code, pavo_error* error) {
  *code = PAVO_OK;
  switch (kind) {
    case FaultKind::kError:
      *code = sdk::fail(
          error, PAVO_ERROR_NODE_FAILED, "%s: the mock was told to fail; try without", call);
      return FaultKind::kNone;
    case FaultKind::kOom:
      *code = sdk::fail(
          error, PAVO_ERROR_OUT_OF_MEMORY, "%s: the mock was told to have no memory", call);
      return FaultKind::kNone;
    case FaultKind::kThrow:
      throw std::runtime_error("the mock was told to throw");
    case FaultKind::kCrash:
      __builtin_trap();
    case FaultKind::kHang:
      for (;;) {
        std::this_thread::sleep_for(std::chrono::hours(1));
      }
    default:
      return kind;
  }
}

}  // namespace pavo::mock
