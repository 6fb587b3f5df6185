// C++17: kernels as a table. From it come the predicate, the texts of its refusals, the table of
// what is supported, and the options `refuse` and `force_variant`. A kernel runs only nodes that
// its rules passed, so predicate and launch cannot disagree.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "pavo/plugin_base.h"
#include "pavo/rules.h"

namespace pavo::sdk {

// Run: how your plugin starts a kernel, e.g. a function pointer; this table only keeps it.
template <typename Run>
struct Kernel {
  int32_t op;        // pavo_op_<name>
  std::string name;  // the variant that verdicts carry: op, format, strategy
  int32_t decision;  // PAVO_ACCEPT, or PAVO_ACCEPT_SLOW: works, but is not tuned
  std::vector<Rule> rules;
  Run run;
};

// Items of "a,b"; empty ones are dropped.
inline std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    if (end > begin) {
      parts.push_back(text.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  return parts;
}

template <typename Run>
class OpTable {
 public:
  // Kernels of one op stand best first.
  explicit OpTable(std::vector<Kernel<Run>> kernels) : kernels_(std::move(kernels)) {}

  // The two options that every plugin should have; use() obeys them.
  std::vector<Option> options() const {
    return {
        {"refuse", PAVO_VALUE_STRING, "op,op: ops that are refused, to try a fallback", ""},
        {"force_variant",
         PAVO_VALUE_STRING,
         "op=kernel,op=kernel: the only kernel allowed for these ops; values: " + values(),
         ""}};
  }

  // Raises PAVO_ERROR_INVALID_ARGUMENT for names that are none.
  void use(const OptionValues& options) {
    for (const std::string& name : split(options.text("refuse"))) {
      refused_.push_back(op_of("refuse", name));
    }
    for (const std::string& item : split(options.text("force_variant"))) {
      const size_t equals = std::min(item.find('='), item.size());
      const int32_t op = op_of("force_variant", item.substr(0, equals));
      const std::string name = item.substr(std::min(equals + 1, item.size()));
      const bool known = std::any_of(kernels_.begin(), kernels_.end(), [&](const auto& kernel) {
        return kernel.op == op && kernel.name == name;
      });
      if (!known) {
        raise(
            PAVO_ERROR_INVALID_ARGUMENT,
            "option force_variant: no kernel '%s', expected one of"
            " %s",
            item.c_str(),
            values().c_str());
      }
      forced_.push_back({op, name});
    }
  }

  // The best kernel whose rules the node passes, with the acceptance in *verdict; else NULL, and
  // *verdict says why the last of them refuses. For nodes that check_node() passed.
  const Kernel<Run>* find(const NodeQuery& query, pavo_verdict* verdict) const {
    const int32_t op = query.node().op;
    if (std::find(refused_.begin(), refused_.end(), op) != refused_.end()) {
      refuse(verdict, PAVO_REASON_POLICY, -1, -1, 0, op, "the option refuse names %s", op_name(op));
      return nullptr;
    }
    refuse(verdict, PAVO_REASON_OP, -1, -1, 0, op, "there is no kernel for op %s", op_name(op));
    for (const Kernel<Run>& kernel : kernels_) {
      if (kernel.op == op && is_allowed(kernel) && passes(kernel, query, verdict)) {
        clear_verdict(verdict);
        verdict->decision = kernel.decision;
        copy_text(verdict->variant, sizeof verdict->variant, kernel.name);
        return &kernel;
      }
    }
    return nullptr;
  }

  // Markdown, one line a kernel.
  std::string support_table() const {
    std::string text = "| op | kernel | | takes |\n| --- | --- | --- | --- |\n";
    for (const Kernel<Run>& kernel : kernels_) {
      text += "| " + std::string(op_name(kernel.op)) + " | " + kernel.name + " | " +
              (kernel.decision == PAVO_ACCEPT ? "tuned" : "generic") + " | ";
      for (size_t i = 0; i < kernel.rules.size(); ++i) {
        text += (i == 0 ? "" : "; ") + kernel.rules[i].text;
      }
      text += " |\n";
    }
    return text;
  }

 private:
  struct Forced {
    int32_t op;
    std::string kernel;
  };

  // "glu=fast|slow,norm=slow".
  std::string values() const {
    std::string text;
    for (const OpFacts& op : kOps) {
      std::string names;
      for (const Kernel<Run>& kernel : kernels_) {
        if (kernel.op == op.id) {
          names += (names.empty() ? "" : "|") + kernel.name;
        }
      }
      if (!names.empty()) {
        text += (text.empty() ? "" : ",") + std::string(op.name) + "=" + names;
      }
    }
    return text;
  }

  static int32_t op_of(const char* option, const std::string& name) {
    const OpFacts* op = find_op(name);
    if (op == nullptr) {
      raise(PAVO_ERROR_INVALID_ARGUMENT, "option %s: there is no op '%s'", option, name.c_str());
    }
    return op->id;
  }

  static bool is_named(const Kernel<Run>& kernel, Operand operand) {
    return std::any_of(kernel.rules.begin(), kernel.rules.end(), [operand](const Rule& rule) {
      return std::any_of(rule.operands.begin(), rule.operands.end(), [operand](Operand named) {
        return named.is_output == operand.is_output && named.index == operand.index;
      });
    });
  }

  // What no rule names would be ignored by the kernel.
  static bool takes(
      const Kernel<Run>& kernel, const NodeQuery& query, Operand operand, pavo_verdict* verdict) {
    return query.tensor(operand) == nullptr || is_named(kernel, operand) ||
           refuse(
               verdict,
               PAVO_REASON_OPERAND,
               query.number(operand),
               -1,
               0,
               1,
               "kernel %s takes no %s",
               kernel.name.c_str(),
               operand_text(operand).c_str());
  }

  static bool passes(const Kernel<Run>& kernel, const NodeQuery& query, pavo_verdict* verdict) {
    for (const Rule& rule : kernel.rules) {
      if (!rule.check(query, verdict)) {
        return false;
      }
    }
    for (uint32_t i = 0; i < query.node().input_count; ++i) {
      if (!takes(kernel, query, in(i), verdict)) {
        return false;
      }
    }
    for (uint32_t i = 0; i < query.node().output_count; ++i) {
      if (!takes(kernel, query, out(i), verdict)) {
        return false;
      }
    }
    return true;
  }

  bool is_allowed(const Kernel<Run>& kernel) const {
    for (const Forced& forced : forced_) {
      if (forced.op == kernel.op) {
        return forced.kernel == kernel.name;
      }
    }
    return true;
  }

  std::vector<Kernel<Run>> kernels_;
  std::vector<int32_t> refused_;
  std::vector<Forced> forced_;
};

}  // namespace pavo::sdk
