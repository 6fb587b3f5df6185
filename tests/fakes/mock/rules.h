// What the mock device was told to refuse and to break.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "pavo/plugin.h"

namespace pavo::mock {

// One condition of a refusal: "type1=q8_0", "dim0.1>128", "dim1.0%64" (no multiple), "inputs>1"
// (that are given), "kv_rows>100".
struct Condition {
  enum class What { kType, kDimension, kInputs, kKvRows };
  What what = What::kKvRows;
  uint32_t operand = 0;
  int32_t dimension = 0;
  char relation = '=';  // = < > %
  int64_t value = 0;
};

// "attention", or "op:condition:condition"; op '*' means every op.
struct RefuseRule {
  std::string text;
  int32_t op = 0;  // 0: every op
  std::vector<Condition> conditions;
};

enum class FaultKind {
  kNone,
  kError,      // the call returns PAVO_ERROR_NODE_FAILED
  kOom,        // the call returns PAVO_ERROR_OUT_OF_MEMORY
  kThrow,      // the call throws
  kCrash,      // the call crashes
  kHang,       // the call never returns
  kFail,       // what the call queued fails later
  kLost,       // so does it, and the device is lost
  kCrashLate,  // what it queued crashes, in a thread of the device
  kHangLate,   // what it queued never ends
};

class Rules {
 public:
  // refuse: rules, ',' between. only: ops, all others are refused; empty: none. fault: items
  // "call@n=kind" (at the n-th call, from 1) or "call=kind" (at every one). Errors name the item.
  int32_t parse(
      std::string_view refuse, std::string_view only, std::string_view fault, pavo_error* error);

  // Makes a refusal of an accepted verdict, or narrows its range of K/V rows.
  void apply(const pavo_graph& graph, const pavo_node& node, pavo_verdict* verdict) const;

  // Counts the call and says what is to go wrong with it.
  FaultKind count(const std::string& call);

 private:
  struct FaultRule {
    std::string call;
    int64_t at = 0;  // 0: always
    FaultKind kind = FaultKind::kNone;
  };

  std::vector<RefuseRule> refused_;
  std::vector<int32_t> only_;
  std::vector<FaultRule> faults_;
  std::mutex mutex_;
  std::map<std::string, int64_t> counts_;
};

// 0 for a name that no op has.
int32_t op_of(std::string_view name);

// Does what kError to kHang say, and gives the others back.
FaultKind act_on(FaultKind kind, const char* call, int32_t* code, pavo_error* error);

}  // namespace pavo::mock
