// C++17: what kernels ask of nodes, as data: each rule is a check with the text of its refusal and
// with a text for the table of what is supported.
//
// A rule about an operand refuses the node that lacks it; optional() lets it be absent. Operands
// that none of a kernel's rules names must be absent (op_table.h), so nothing is overlooked.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "pavo/node_checks.h"

namespace pavo::sdk {

struct Rule {
  std::string text;  // "input 0: f32 activation"
  std::vector<Operand> operands;
  // Writes the refusal and returns false if it does not hold. Pure. For nodes that check_node()
  // passed.
  std::function<bool(const NodeQuery& query, pavo_verdict* verdict)> check;
};

// The rule holds for nodes without its first operand as well.
inline Rule optional(Rule rule) {
  const Operand operand = rule.operands.at(0);
  return {
      rule.text + " or absent",
      rule.operands,
      [operand, check = std::move(rule.check)](const NodeQuery& query, pavo_verdict* verdict) {
        return query.tensor(operand) == nullptr || check(query, verdict);
      }};
}

inline bool check_present(const NodeQuery& query, Operand operand, pavo_verdict* verdict) {
  return query.tensor(operand) != nullptr || refuse(
                                                 verdict,
                                                 PAVO_REASON_OPERAND,
                                                 -1,
                                                 -1,
                                                 1,
                                                 0,
                                                 "expected %s, got none",
                                                 operand_text(operand).c_str());
}

// A rule about one operand, which is there when `check` runs: check(query, tensor, verdict).
template <typename Check>
Rule operand_rule(Operand operand, const std::string& text, Check check) {
  return {
      operand_text(operand) + ": " + text,
      {operand},
      [operand, check](const NodeQuery& query, pavo_verdict* verdict) {
        return check_present(query, operand, verdict) &&
               check(query, *query.tensor(operand), verdict);
      }};
}

inline Rule type(Operand operand, std::vector<int32_t> types) {
  std::string names;
  for (const int32_t type : types) {
    names += (names.empty() ? "" : ", ") + std::string(pavo_type_name(type));
  }
  return operand_rule(
      operand,
      names,
      [operand, types = std::move(types), names](
          const NodeQuery& query, const pavo_tensor& tensor, pavo_verdict* verdict) {
        return std::find(types.begin(), types.end(), tensor.type) != types.end() ||
               refuse(
                   verdict,
                   PAVO_REASON_TYPE,
                   query.number(operand),
                   -1,
                   types.front(),
                   tensor.type,
                   "%s: expected type %s, got %s",
                   operand_text(operand).c_str(),
                   names.c_str(),
                   pavo_type_name(tensor.type));
      });
}

inline const char* role_name(int32_t role) {
  constexpr const char* kNames[] = {"activation", "weight", "K/V pool", "step tensor", "state"};
  return role >= 0 && role <= PAVO_ROLE_STATE ? kNames[role] : "unknown";
}

inline Rule role(Operand operand, int32_t wanted) {
  return operand_rule(
      operand,
      role_name(wanted),
      [operand, wanted](const NodeQuery& query, const pavo_tensor& tensor, pavo_verdict* verdict) {
        return tensor.role == wanted || refuse(
                                            verdict,
                                            PAVO_REASON_ROLE,
                                            query.number(operand),
                                            -1,
                                            wanted,
                                            tensor.role,
                                            "%s: expected role %s, got %s",
                                            operand_text(operand).c_str(),
                                            role_name(wanted),
                                            role_name(tensor.role));
      });
}

// Values of a row lie side by side, rows begin at whole elements. What Launch::rows() needs.
inline Rule dense_rows(Operand operand) {
  return operand_rule(
      operand,
      "rows without gaps",
      [operand](const NodeQuery& query, const pavo_tensor& tensor, pavo_verdict* verdict) {
        const int64_t bytes = pavo_type_block_bytes(tensor.type);
        for (int32_t i = 0; i < tensor.rank && has_strides(tensor); ++i) {
          const bool last = i == tensor.rank - 1;
          if (tensor.shape[i] > 1 &&
              (last ? tensor.stride[i] != bytes : tensor.stride[i] % bytes != 0)) {
            return refuse(
                verdict,
                PAVO_REASON_STRIDE,
                query.number(operand),
                i,
                bytes,
                tensor.stride[i],
                "%s: expected a stride of %s%" PRId64 " bytes, got %" PRId64,
                operand_text(operand).c_str(),
                last ? "" : "a multiple of ",
                bytes,
                tensor.stride[i]);
          }
        }
        return true;
      });
}

// All of them, in order; the text is of the whole.
inline Rule all_of(std::string text, const std::vector<Rule>& rules) {
  std::vector<Operand> operands;
  for (const Rule& rule : rules) {
    operands.insert(operands.end(), rule.operands.begin(), rule.operands.end());
  }
  return {std::move(text), operands, [rules](const NodeQuery& query, pavo_verdict* verdict) {
            return std::all_of(rules.begin(), rules.end(), [&](const Rule& rule) {
              return rule.check(query, verdict);
            });
          }};
}

// f32 that other nodes compute or read; rows may have gaps between them.
inline Rule activation(Operand operand) {
  return all_of(
      operand_text(operand) + ": f32 activation",
      {type(operand, {PAVO_TYPE_F32}), role(operand, PAVO_ROLE_ACTIVATION), dense_rows(operand)});
}

// i32 that the host writes before each submit.
inline Rule step(Operand operand) {
  return all_of(
      operand_text(operand) + ": i32 step tensor",
      {type(operand, {PAVO_TYPE_I32}), role(operand, PAVO_ROLE_STEP), dense_rows(operand)});
}

inline Rule weight(Operand operand, std::vector<int32_t> types) {
  const Rule typed = type(operand, std::move(types));
  return all_of(typed.text + " weight", {typed, role(operand, PAVO_ROLE_WEIGHT)});
}

inline Rule rank(Operand operand, int32_t wanted) {
  return operand_rule(
      operand,
      "rank " + std::to_string(wanted),
      [operand, wanted](const NodeQuery& query, const pavo_tensor& tensor, pavo_verdict* verdict) {
        return tensor.rank == wanted || refuse(
                                            verdict,
                                            PAVO_REASON_SHAPE_MISMATCH,
                                            query.number(operand),
                                            -1,
                                            wanted,
                                            tensor.rank,
                                            "%s: expected rank %d, got %d",
                                            operand_text(operand).c_str(),
                                            wanted,
                                            tensor.rank);
      });
}

// An absent `other` asks for nothing.
inline Rule same_shape(Operand operand, Operand other) {
  return operand_rule(
      operand,
      "shape of " + operand_text(other),
      [operand, other](const NodeQuery& query, const pavo_tensor& tensor, pavo_verdict* verdict) {
        const pavo_tensor* model = query.tensor(other);
        if (model == nullptr) {
          return true;
        }
        const std::string what = operand_text(operand);
        if (tensor.rank != model->rank) {
          return refuse(
              verdict,
              PAVO_REASON_SHAPE_MISMATCH,
              query.number(operand),
              -1,
              model->rank,
              tensor.rank,
              "%s: expected rank %d, got %d",
              what.c_str(),
              model->rank,
              tensor.rank);
        }
        for (int32_t i = 0; i < tensor.rank; ++i) {
          if (tensor.shape[i] != model->shape[i]) {
            return refuse(
                verdict,
                PAVO_REASON_SHAPE_MISMATCH,
                query.number(operand),
                i,
                model->shape[i],
                tensor.shape[i],
                "%s: expected dimension %d to be %" PRId64 ", got %" PRId64,
                what.c_str(),
                i,
                model->shape[i],
                tensor.shape[i]);
          }
        }
        return true;
      });
}

// Index of a dimension, counted from the end if negative; -1: the tensor has none.
inline int32_t dimension_of(const pavo_tensor& tensor, int32_t dimension) {
  const int32_t index = dimension < 0 ? tensor.rank + dimension : dimension;
  return index >= 0 && index < tensor.rank ? index : -1;
}

inline Rule dim_in(Operand operand, int32_t dimension, int64_t least, int64_t most) {
  return operand_rule(
      operand,
      "dimension " + std::to_string(dimension) + " of " + std::to_string(least) + " to " +
          std::to_string(most),
      [=](const NodeQuery& query, const pavo_tensor& tensor, pavo_verdict* verdict) {
        const int32_t i = dimension_of(tensor, dimension);
        const int64_t size = i < 0 ? 0 : tensor.shape[i];
        return (i >= 0 && size >= least && size <= most) ||
               refuse(
                   verdict,
                   PAVO_REASON_SHAPE_RANGE,
                   query.number(operand),
                   i,
                   size < least ? least : most,
                   size,
                   "%s: expected dimension %d of %" PRId64 " to %" PRId64 ", got %" PRId64,
                   operand_text(operand).c_str(),
                   dimension,
                   least,
                   most,
                   size);
      });
}

inline Rule multiple_of(Operand operand, int32_t dimension, int64_t factor) {
  return operand_rule(
      operand,
      "dimension " + std::to_string(dimension) + " a multiple of " + std::to_string(factor),
      [=](const NodeQuery& query, const pavo_tensor& tensor, pavo_verdict* verdict) {
        const int32_t i = dimension_of(tensor, dimension);
        const int64_t size = i < 0 ? 0 : tensor.shape[i];
        return (i >= 0 && size % factor == 0) ||
               refuse(
                   verdict,
                   PAVO_REASON_SHAPE_MULTIPLE,
                   query.number(operand),
                   i,
                   factor,
                   size,
                   "%s: expected dimension %d to be a multiple of %" PRId64 ", got %" PRId64,
                   operand_text(operand).c_str(),
                   dimension,
                   factor,
                   size);
      });
}

// A field of the op's parameters: param("kind", &pavo_glu_params::kind, {PAVO_GLU_SILU}).
template <typename Params>
Rule param(const char* name, int32_t Params::*field, std::vector<int32_t> values) {
  std::string texts;
  for (const int32_t value : values) {
    texts += (texts.empty() ? "" : ", ") + std::to_string(value);
  }
  return {
      std::string(name) + ": " + texts,
      {},
      [name, field, values = std::move(values), texts](
          const NodeQuery& query, pavo_verdict* verdict) {
        const auto& params = query.params<Params>();
        const int32_t value = params.*field;
        const auto offset = reinterpret_cast<const char*>(&(params.*field)) -
                            reinterpret_cast<const char*>(&params);
        return std::find(values.begin(), values.end(), value) != values.end() ||
               refuse(
                   verdict,
                   PAVO_REASON_PARAM,
                   -1,
                   static_cast<int32_t>(offset),
                   values.front(),
                   value,
                   "expected %s of %s, got %d",
                   name,
                   texts.c_str(),
                   value);
      }};
}

// What no rule above says: pass(query) with the text of the refusal.
inline Rule when(
    const std::string& text, int32_t reason, std::function<bool(const NodeQuery& query)> pass) {
  return {
      text,
      {},
      [text, reason, pass = std::move(pass)](const NodeQuery& query, pavo_verdict* verdict) {
        return pass(query) || refuse(verdict, reason, -1, -1, 0, 0, "expected %s", text.c_str());
      }};
}

}  // namespace pavo::sdk
